"""Check boots: one for each image with KUnit, found again by its key; a kernel that fails its tests isn't judged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from kdyno.base.measurement import BootStatus
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, BootOrder, Description
from kdyno.boot.fake import FakeConfig
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.judge.verdicts.across import compare_runs
from kdyno.judge.verdicts.assemble import assemble
from kdyno.judge.verdicts.checks import checks_of, summaries
from kdyno.judge.verdicts.model import RunReport, to_json
from kdyno.kernel.image import Image
from kdyno.kernel.knobs import KconfigRequest
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.guest.stream import AgentReport
from kdyno.report.html import render as render_html
from kdyno.report.terminal import render
from kdyno.runs import checks
from kdyno.runs.checks import WORDS, check_kernels, has_kunit
from kdyno.runs.forecast import CHECK_SECONDS, forecast
from kdyno.runs.outlook import run_ahead
from kdyno.runs.session import Session
from kdyno.store.artefacts import Artefacts
from kdyno.store.checks import check_key
from kdyno.store.records import Boot, RunRecord
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
from tests.unit import specimen
from tests.unit.boot.test_ktap import FAILING, RECORDED
from tests.unit.runs.test_forecast import VARIANTS, plan, prepared, run_plan

PASSING = RECORDED.read_text()


class Machine:
    """Boots nothing; leaves these consoles, one after the other."""

    def __init__(self, *consoles: str, status: BootStatus = "ok") -> None:
        self.consoles, self.status = list(consoles), status
        self.orders: list[BootOrder] = []

    def describe(self) -> Description:
        return Description(lane="model", parallel=1, facts={"type": "stub"}, host={})

    def boot(self, order: BootOrder) -> BootEnd:
        self.orders.append(order)
        console = order.directory / "console.log"
        console.write_text(self.consoles.pop(0))
        reason = "" if self.status == "ok" else "oops: it died"
        stream = order.directory / "stream.jsonl"
        return BootEnd(self.status, reason, 1.0, None, (), console, stream, AgentReport())


@pytest.fixture
def store(state: State) -> Iterator[Store]:
    with Store(sqlite_file(state.store_file)) as store:
        yield store


def images_of(directory: Path, *, config: str = "CONFIG_KUNIT=y\n") -> dict[str, tuple[Image, ...]]:
    images: dict[str, tuple[Image, ...]] = {}
    for name, recipe in VARIANTS.items():
        (directory / name).mkdir()
        (directory / name / "config").write_text(f"CONFIG_X86=y\n{config}")
        images[name] = (Image(directory=directory / name, record=specimen.image(name, recipe)),)
    return images


def checked(
    machine: Machine, images: dict[str, tuple[Image, ...]], state: State, store: Store, patch: pytest.MonkeyPatch
) -> dict[str, str]:
    patch.setattr(checks, "open_equipped_machine", lambda *_: machine)
    return check_kernels(prepared(), images, Session(state, store, Talk(quiet=True)))


def test_each_variant_boots_once_for_its_tests_and_never_again(
    tmp_path: Path, state: State, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, images = Machine(PASSING, PASSING, FAILING), images_of(tmp_path)
    assert checked(machine, images, state, store, monkeypatch) == {}
    assert [order.variant for order in machine.orders] == list(VARIANTS)
    assert machine.orders[2].cmdline == ("mitigations=off", *WORDS)
    assert checked(machine, images, state, store, monkeypatch) == {}
    assert len(machine.orders) == 3, "a failed suite stays failed: nobody tries until it passes"


def test_a_kernel_without_kunit_is_not_booted(
    tmp_path: Path, state: State, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = images_of(tmp_path, config="# CONFIG_KUNIT is not set\nCONFIG_KUNIT_DEBUGFS=y\n")
    assert checked(Machine(), images, state, store, monkeypatch) == {}
    assert not has_kunit(Image(directory=tmp_path / "nowhere", record=images["plain"][0].record))


def test_a_lost_boot_is_no_result_and_is_tried_again(
    tmp_path: Path, state: State, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = {"plain": images_of(tmp_path)["plain"]}
    lost = checked(Machine("", status="lost"), images, state, store, monkeypatch)
    assert lost == {"KUnit of plain": "oops: it died"}
    machine = Machine(PASSING)
    assert checked(machine, images, state, store, monkeypatch) == {}
    assert len(machine.orders) == 1


def test_a_forecast_has_the_checks_that_are_left(
    tmp_path: Path, state: State, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = (KconfigRequest(symbol="KUNIT", value="y", by="recipe"),)
    images = images_of(tmp_path)
    plans = {
        name: (plan(images[name][0].record.key, recipe).model_copy(update={"asks": asks}),)
        for name, recipe in VARIANTS.items()
    }
    of = replace(prepared(), plans=plans)
    before = forecast(of, run_plan(of), state, store)
    assert before.check_boots == 3 and "boot 3 times for KUnit" in run_ahead(before, of.experiment, 6)[0]
    checked(Machine(PASSING), {"plain": images["plain"]}, state, store, monkeypatch)
    after = forecast(of, run_plan(of), state, store)
    assert after.check_boots == 2
    assert before.seconds_of_boots - after.seconds_of_boots == CHECK_SECONDS


def test_measured_boots_of_such_a_kernel_leave_its_suites_out() -> None:
    asking = plan("a", VARIANTS["off"]).model_copy(
        update={"asks": (KconfigRequest(symbol="KUNIT", value="y", by="recipe"),)}
    )
    of = replace(prepared(), plans=dict.fromkeys(VARIANTS, (asking,)))
    assert of.cmdline("off") == ("mitigations=off", "kunit.enable=0")
    assert prepared().cmdline("off") == ("mitigations=off",)
    says = of.experiment.variants["off"].model_copy(update={"cmdline": ("kunit.enable=1",)})
    own = replace(of, experiment=of.experiment.model_copy(update={"variants": {**VARIANTS, "off": says}}))
    assert own.cmdline("off") == ("kunit.enable=1",)


def test_a_base_configuration_may_have_kunit_unless_the_recipe_says_no() -> None:
    base = plan("a", VARIANTS["plain"]).base.model_copy(update={"text": "CONFIG_X86=y\nCONFIG_KUNIT=y\n"})
    with_base = plan("a", VARIANTS["plain"]).model_copy(update={"base": base})
    assert with_base.asks_for_kunit
    without = with_base.model_copy(update={"asks": (KconfigRequest(symbol="KUNIT", value="n", by="recipe"),)})
    assert not without.asks_for_kunit


def test_the_machine_of_a_check_has_time_and_a_quick_clock() -> None:
    machine = QemuConfig(lane="model", icount_shift=5).for_check_boot()
    assert machine.icount_shift == 0
    assert machine.limits.boot == machine.limits.silence == machine.limits.total
    fake = FakeConfig(recording=Path("/nowhere"))
    assert fake.for_check_boot() == fake


def test_a_check_is_not_counted_on_the_cpu_that_is_measured(
    tmp_path: Path, state: State, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, images = Machine(PASSING), {"plain": images_of(tmp_path)["plain"]}
    checked(machine, images, state, store, monkeypatch)
    assert [order.is_counted for order in machine.orders] == [False]
    run = QemuConfig(pmu=PmuConfig(family="znver4"))
    guest, counted = QemuMachine(run.for_check_boot()), QemuMachine(run)
    assert (guest.cpu_model, guest._guest.cmdline) == (counted.cpu_model, counted._guest.cmdline)
    assert guest.cpu_model != QemuMachine(QemuConfig()).cpu_model


def judged(directory: Path, consoles: dict[str, str], status: BootStatus = "ok") -> RunReport:
    """The report of a run whose variants left these consoles in their check boots."""
    run = specimen.run_record(blocks=4)
    specimen.report(directory, run)
    artefacts = Artefacts(directory / "artefacts")
    with Store(f"sqlite:///{directory / 'store.sqlite'}") as store:
        for variant, text in consoles.items():
            (directory / "console").write_text(text)
            store.add_boot(check_boot(run, variant, artefacts.put(directory / "console"), status), ())
        return assemble(store, run.id, artefacts)


def check_boot(run: RunRecord, variant: str, console: str, status: BootStatus) -> Boot:
    [of] = (record for record in run.variants if record.name == variant)
    key = check_key(of.images[0].key, of.recipe.cmdline, run.machine)
    reason = "" if status == "ok" else "panic: Kernel panic - not syncing"
    return Boot(key=key, seed=1, status=status, reason=reason, started=specimen.NOON, seconds=30.0, console=console)


def shown(report: RunReport) -> str:
    out = StringIO()
    render(report, Console(file=out, width=400))
    return out.getvalue()


def test_a_report_says_what_passed_and_judges_it(tmp_path: Path) -> None:
    report = judged(tmp_path, {"gcc-12": PASSING, "gcc-12-O3": PASSING})
    assert [check.variant for check in report.checks] == ["gcc-12", "gcc-12-O3"]
    assert "KUnit: gcc-12-O3: 20 suites, 166 tests passed\n" in shown(report)
    assert "KUnit: gcc-12: 20 suites, 166 tests passed" in render_html(report)
    assert json.loads(to_json(report))["checks"][0]["tests_passed"] == 166
    assert any(comparison.verdict for comparison in report.comparisons if comparison.variant == "gcc-12-O3")


def test_a_variant_whose_kernel_fails_a_test_is_not_judged(tmp_path: Path) -> None:
    report = judged(tmp_path, {"gcc-12": PASSING, "gcc-12-O3": FAILING})
    bad = [comparison for comparison in report.comparisons if comparison.variant == "gcc-12-O3"]
    assert bad and all(comparison.verdict is None and comparison.estimate is None for comparison in bad)
    assert all(
        comparison.reason.startswith("not judged, KUnit: gcc-12-O3: 3 suites, 1 test passed") for comparison in bad
    )
    assert any(comparison.verdict for comparison in report.comparisons if comparison.variant == "clang-19-thinlto")
    assert not any(value.variant == "gcc-12-O3" for value in report.values)
    text = shown(report)
    assert "string.memset32 failed: EXPECTATION FAILED at lib/string_kunit.c:40" in text
    assert "1 warning of the kernel" in text and "; not judged" in text


def test_a_baseline_that_fails_leaves_nothing_to_judge(tmp_path: Path) -> None:
    report = judged(tmp_path, {"gcc-12": FAILING})
    assert not any(comparison.verdict for comparison in report.comparisons)
    assert {comparison.reason.partition(": 3 suites")[0] for comparison in report.comparisons} == {
        "not judged, KUnit: gcc-12"
    }


def test_a_check_boot_that_died_withholds_verdicts_though_its_suites_passed(tmp_path: Path) -> None:
    report = judged(tmp_path, {"gcc-12-O3": PASSING}, status="failed")
    assert summaries(report.checks) == [
        "KUnit: gcc-12-O3: 20 suites, 166 tests passed; panic: Kernel panic - not syncing; not judged"
    ]


def test_a_console_that_is_gone_is_a_fault_and_no_error(tmp_path: Path) -> None:
    run = specimen.run_record(blocks=4)
    specimen.report(tmp_path, run)
    artefacts = Artefacts(tmp_path / "artefacts")
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.add_boot(check_boot(run, "gcc-12", "e" * 64, "ok"), ())
        [check] = checks_of(store, run, artefacts)
    assert not check.passed and check.fault.startswith("its console is not available")


def with_kunit(run: RunRecord) -> RunRecord:
    recipes = [variant.recipe.model_copy(update={"kconfig": {"KUNIT": True}}) for variant in run.variants]
    return run.model_copy(
        update={
            "variants": tuple(
                variant.model_copy(update={"recipe": recipe})
                for variant, recipe in zip(run.variants, recipes, strict=True)
            )
        }
    )


def test_a_kernel_that_asks_for_kunit_is_not_judged_before_its_suites_ran(tmp_path: Path) -> None:
    report = specimen.report(tmp_path, with_kunit(specimen.run_record(blocks=4)))
    assert len(report.checks) == 3 and not any(comparison.verdict for comparison in report.comparisons)
    assert "suites have not run yet" in report.checks[0].fault


def test_comparing_two_runs_asks_for_the_checks_of_both(tmp_path: Path) -> None:
    judged(tmp_path, {"gcc-12": PASSING, "gcc-12-O3": FAILING})
    run = specimen.run_record(blocks=4)
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        reports = compare_runs(store, run.id, run.id, Artefacts(tmp_path / "artefacts"), analysed=False)
    passed = {report.baseline.partition("@")[0]: {check.passed for check in report.checks} for report in reports}
    assert passed == {"gcc-12": {True}, "gcc-12-O3": {False}, "clang-19-thinlto": set()}


def test_of_several_images_those_that_failed_are_counted(tmp_path: Path) -> None:
    [good] = judged(tmp_path, {"gcc-12": PASSING}).checks
    bad = good.model_copy(update={"fault": "no suite ran"})
    assert summaries([good, bad, good]) == [
        "KUnit: gcc-12: 20 suites, 166 tests passed; no suite ran (1 of 3 images); not judged"
    ]
    assert summaries([good, good]) == ["KUnit: gcc-12: 20 suites, 166 tests passed (2 of 2 images)"]
