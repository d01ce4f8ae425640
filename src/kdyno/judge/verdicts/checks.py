"""The kernels' own checks in a run: their KUnit suites, read from the consoles of their check boots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kdyno.base.errors import KdynoError
from kdyno.base.frozen import Frozen
from kdyno.base.text import clean, format_count
from kdyno.boot.console import read_console, warnings_of
from kdyno.boot.ktap import FailedTest, read_ktap
from kdyno.store.artefacts import Artefacts
from kdyno.store.checks import check_key
from kdyno.store.records import Boot, RunRecord
from kdyno.store.store import Store

FAILURES_SAID = 3
"""Failed tests that one line names."""


class KernelCheck(Frozen):
    """The result of the check boot of one image of a variant."""

    variant: str
    console: str | None
    """SHA-256 of the console artefact."""
    suites: int
    tests_passed: int
    tests_failed: int
    tests_skipped: int
    failures: tuple[FailedTest, ...]
    fault: str
    """Other failures: the boot failed, or not all suites have a result; empty if there are none."""
    warnings: tuple[str, ...]
    """The kernel's warnings meanwhile; a suite may provoke warnings, so they withhold nothing."""

    @property
    def passed(self) -> bool:
        return not self.failures and not self.fault

    def in_words(self) -> str:
        """Return one line: `gcc-O2: 27 suites, 214 tests passed, 3 skipped`."""
        skipped = f", {self.tests_skipped:,} skipped" if self.tests_skipped else ""
        failed = f", {self.tests_failed:,} failed" if self.tests_failed else ""
        numbers = (
            f"{format_count(self.suites, 'suite')}, {format_count(self.tests_passed, 'test')} passed{skipped}{failed}"
        )
        parts = [*map(_failure_words, self.failures[:FAILURES_SAID]), *([self.fault] if self.fault else [])]
        if len(self.failures) > FAILURES_SAID:
            parts.append(f"and {len(self.failures) - FAILURES_SAID:,} more")
        if self.warnings:
            parts.append(f"{format_count(len(self.warnings), 'warning')} of the kernel, first: {self.warnings[0]}")
        return "; ".join([f"{clean(self.variant)}: {numbers}", *parts])


def checks_of(store: Store, run: RunRecord, artefacts: Artefacts) -> tuple[KernelCheck, ...]:
    """Return the checks of a run's kernels, one for each image that has KUnit.

    One that is not on record, or was lost, is a fault if the recipe asks for KUnit. Only the record shows that a base
    configuration has it.
    """
    return tuple(_checks(store, run, artefacts))


def _checks(store: Store, run: RunRecord, artefacts: Artefacts) -> Iterator[KernelCheck]:
    for variant in run.variants:
        for image in variant.images:
            on_record = store.boot(check_key(image.key, variant.recipe.words, run.machine))
            if on_record and on_record[0].status != "lost":
                yield read_check(variant.name, on_record[0], artefacts)
            elif variant.recipe.kconfig.get("KUNIT") in (True, "y"):
                yield _not_yet(variant.name)


def _not_yet(variant: str) -> KernelCheck:
    return KernelCheck(
        variant=variant,
        console=None,
        suites=0,
        tests_passed=0,
        tests_failed=0,
        tests_skipped=0,
        failures=(),
        fault="its suites have not run yet: `kdyno run` of the experiment boots it for them",
        warnings=(),
    )


def read_check(variant: str, boot: Boot, artefacts: Artefacts) -> KernelCheck:
    """Return the result of a check boot. A missing console is a fault, not an error."""
    try:
        text = read_console(artefacts.get(boot.console)) if boot.console else ""
    except KdynoError as error:
        text, fault = "", f"its console is not available: {clean(str(error))}"
    else:
        fault = clean(boot.reason) if boot.status != "ok" else ""
    ktap = read_ktap(text)
    return KernelCheck(
        variant=variant,
        console=boot.console,
        suites=ktap.suites,
        tests_passed=ktap.passed,
        tests_failed=ktap.failed,
        tests_skipped=ktap.skipped,
        failures=ktap.failures,
        fault=fault or ktap.fault,
        warnings=warnings_of(text),
    )


def withheld(checks: Sequence[KernelCheck]) -> Mapping[str, str]:
    """Return why variants aren't judged, by variant."""
    return {check.variant: f"not judged, KUnit: {check.in_words()}" for check in checks if not check.passed}


def summaries(checks: Sequence[KernelCheck]) -> list[str]:
    """Return a line for each variant; if it has several images, the first that did not pass speaks for all."""
    by_variant: dict[str, list[KernelCheck]] = {}
    for check in checks:
        by_variant.setdefault(check.variant, []).append(check)
    lines = []
    for of in by_variant.values():
        bad = [check for check in of if not check.passed]
        images = f" ({len(bad) or len(of)} of {len(of)} images)" if len(of) > 1 else ""
        consequence = "; not judged" if bad else ""
        lines.append(f"KUnit: {(bad or of)[0].in_words()}{images}{consequence}")
    return lines


def _failure_words(failure: FailedTest) -> str:
    name = f"{failure.suite}.{failure.test}" if failure.test else failure.suite
    return f"{name} failed{f': {failure.why}' if failure.why else ''}"
