"""Assembling the report of a run: the store's records, the judge's verdicts, the consoles of what went wrong."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from kdyno.errors import KdynoError, UserError
from kdyno.judge import values
from kdyno.judge.compare import judge
from kdyno.report.clean import clean, clean_lines
from kdyno.report.model import ConsoleText, RunReport, Value
from kdyno.store.artefacts import Artefacts
from kdyno.store.giving_up import given_up
from kdyno.store.records import Benchmark, BootRecord, RunRecord
from kdyno.store.store import Store

CONSOLE_BYTES = 64 * 1024
"""How much of the end of a console goes into a report; the whole is in the artefacts."""


class NoSuchVariant(UserError):
    message = "run {run} has no variant {name}"
    hint = "variants: {known}"


def assemble(store: Store, run_id: str, artefacts: Artefacts, baseline: str | None = None) -> RunReport:
    """Read a run by its id or the start of it, judge it, and return all that a renderer needs.

    `baseline` replaces the run's own. Raises RunUnknown, RunAmbiguous, NoSuchVariant, UnusableSample and the store's
    errors.
    """
    run = store.run(run_id)
    if baseline is not None:
        names = [variant.name for variant in run.variants]
        if baseline not in names:
            raise NoSuchVariant(run=run.id, name=baseline, known=", ".join(names))
        run = run.model_copy(update={"baseline": baseline})
    return judged(run, store.boots(run.id), store.benchmarks(run.id), artefacts)


def judged(run: RunRecord, boots: Sequence[BootRecord], listed: list[Benchmark], artefacts: Artefacts) -> RunReport:
    """Judge boots and put everything together. A console that is missing or damaged is no error: the report says so."""
    benchmarks = _with_unlisted(listed, boots)
    names = [variant.name for variant in run.variants]
    judgement = judge(boots, benchmarks, names, run.baseline, margin=run.margin, alpha=run.alpha)
    return RunReport(
        run=run,
        notices=(*run.notices, *_notices(run, boots)),
        benchmarks=tuple(benchmarks),
        comparisons=judgement.comparisons,
        geometric_means=judgement.geometric_means,
        values=tuple(
            Value(variant=variant, benchmark=benchmark, block=block, value=each)
            for (variant, benchmark), by_block in values.table(boots, benchmarks).items()
            for block, each in by_block.items()
        ),
        boots=tuple(boots),
        consoles=tuple(_console(boot, artefacts) for boot in boots if boot.status != "ok" and boot.console),
        reproduce=reproduce(run),
    )


def reproduce(run: RunRecord) -> str:
    """Return one command line, for a shell, that carries out the same experiment again."""
    return f"printf %s {shlex.quote(run.experiment)} | kdyno run --again -"


def _with_unlisted(listed: list[Benchmark], boots: Sequence[BootRecord]) -> list[Benchmark]:
    """Add the benchmarks that no boot could run or describe: they are shown with the reason."""
    known = {benchmark.name for benchmark in listed}
    names = {name for boot in boots for name in (*boot.unsupported, *boot.broken)}
    return listed + [
        Benchmark(name=name, test=name.partition(".")[0], unit="", direction="lower", description="")
        for name in sorted(names - known)
    ]


def _notices(run: RunRecord, boots: Sequence[BootRecord]) -> list[str]:
    planned = run.blocks * len(run.variants)
    done = len({(boot.variant, boot.block) for boot in boots if boot.status != "lost"})
    failed = sum(boot.status == "failed" for boot in boots)
    hopeless = given_up(boots)
    left = {(variant.name, block) for variant in run.variants for block in range(run.blocks)} - {
        (boot.variant, boot.block) for boot in boots if boot.status != "lost"
    }
    notices = [f"{variant} was given up, it never came through: {reason}" for variant, reason in hopeless.items()]
    if any(variant not in hopeless for variant, _ in left):
        notices.append(f"unfinished: {done} of {planned} boots done; verdicts may still change")
    if failed:
        notices.append(f"{failed} of {planned} boots failed: verdicts are about the boots that survived")
    return notices


def _console(boot: BootRecord, artefacts: Artefacts) -> ConsoleText:
    assert boot.console is not None
    try:
        content = artefacts.get(boot.console).read_bytes()
    except (KdynoError, OSError) as error:
        text = f"[not available: {error}]"
    else:
        left_out = max(0, len(content) - CONSOLE_BYTES)
        head = f"[{left_out} bytes left out]\n" if left_out else ""
        text = head + clean_lines(content[left_out:].decode(errors="replace"))
    return ConsoleText(
        variant=boot.variant, block=boot.block, attempt=boot.attempt, reason=clean(boot.reason), text=text
    )
