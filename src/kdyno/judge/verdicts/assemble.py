"""Assembling the report of a run: the store's records, the judge's verdicts, the consoles of failed boots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial

from kdyno.base.errors import KdynoError
from kdyno.base.lanes import LANES
from kdyno.base.measurement import Benchmark, Correction
from kdyno.base.text import clean, clean_lines
from kdyno.boot.registry import kind_on_record
from kdyno.judge.stats.compare import judge
from kdyno.judge.stats.diagnostics.tables import Analysis
from kdyno.judge.stats.observations import Observations
from kdyno.judge.stats.verdict import NOUNS, Nouns, Scope
from kdyno.judge.verdicts import absence, notices
from kdyno.judge.verdicts.checks import KernelCheck, checks_of, withheld
from kdyno.judge.verdicts.contamination import contamination
from kdyno.judge.verdicts.hellos import read_hellos
from kdyno.judge.verdicts.lane import lane_line
from kdyno.judge.verdicts.looks import Look, look_of
from kdyno.judge.verdicts.model import BootValue, ConsoleText, RunReport
from kdyno.judge.verdicts.selftest import SelfTests, selftests_of
from kdyno.judge.verdicts.values import observations
from kdyno.store.artefacts import Artefacts
from kdyno.store.named_run import require_variant
from kdyno.store.records import BootRecord, RunRecord
from kdyno.store.store import Store

CONSOLE_BYTES = 64 * 1024
"""Characters of the end of a console that go into a report; the whole is in the artefacts."""


@dataclass(frozen=True)
class Rejudge:
    """The settings by which a run is judged instead of its own; None keeps its own."""

    baseline: str | None = None
    margin: float | None = None
    alpha: float | None = None
    correction: Correction | None = None

    def apply(self, run: RunRecord) -> RunRecord:
        """The run with these settings, and with a notice if they are others than its own. Raises NoSuchVariant."""
        if self.baseline is not None:
            require_variant(run.id, self.baseline, [variant.name for variant in run.variants])
        others = {name: value for name, value in asdict(self).items() if value not in (None, getattr(run, name))}
        planned = ", ".join(f"{name} {_setting(getattr(run, name))}" for name in others if name != "baseline")
        judged_by = ", ".join(f"{name} {_setting(value)}" for name, value in others.items() if name != "baseline")
        notices = [f"judged with {judged_by}; the run was planned with {planned}"] if planned else []
        return run.model_copy(update={**others, "notices": (*run.notices, *notices)})


def _setting(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


OWN_SETTINGS = Rejudge()


def assemble(
    store: Store, run_id: str, artefacts: Artefacts, by: Rejudge = OWN_SETTINGS, *, analysed: bool = True
) -> RunReport:
    """Read a run by its id or the start of it, judge it, and return all data that a renderer needs.

    Without `analysed` the tables behind the verdicts, which take seconds, are left out. Raise RunUnknown, RunAmbiguous,
    NoSuchVariant, UnusableSample and the store's errors.
    """
    run = by.apply(store.run(run_id))
    return judge_run(
        run,
        store.boots(run.id),
        store.benchmarks(run.id),
        artefacts,
        selftests_of(store, run),
        begun=store.start_times(run.id),
        checks=checks_of(store, run, artefacts),
        analysed=analysed,
    )


def _scope(run: RunRecord) -> Scope:
    """What verdicts of a run are about; nothing was built for what ran on this host."""
    if not kind_on_record(run.machine).starts_kernels:
        return "rounds"
    return "kernels" if run.layouts else "images"


def judge_run(
    run: RunRecord,
    boots: Sequence[BootRecord],
    listed: Sequence[Benchmark],
    artefacts: Artefacts,
    selftests: SelfTests,
    *,
    begun: Sequence[datetime] = (),
    checks: Sequence[KernelCheck] = (),
    analysed: bool,
) -> RunReport:
    """Judge boots and put everything together; `begun` says when the run, and those that it went on from, were begun.

    A variant with a kernel that didn't pass its check isn't judged. A console that is missing or damaged is not an
    error: the report says so.
    """
    benchmarks = with_unlisted(listed, boots)
    names = tuple(variant.name for variant in run.variants)
    look = look_of(run, boots)
    unjudged = withheld(checks)
    boots_so_far = [boot for boot in boots if boot.block < look.blocks and boot.variant not in unjudged]
    observed = observations(boots_so_far, benchmarks, names, layouts=run.layouts > 0)
    judgement = judge(
        observed,
        names,
        run.baseline,
        margin=run.margin,
        alpha=look.alpha,
        confidence=look.confidence,
        correction=run.correction,
        scope=_scope(run),
        nouns=nouns_of(run),
        why=partial(absence.reason, boots_so_far, unjudged),
    )
    flags = contamination(boots, run.lane)
    return RunReport(
        title=run.name,
        measured=lane_line(run),
        baseline=run.baseline,
        variants=names,
        margin=run.margin,
        alpha=look.alpha,
        confidence=look.confidence,
        correction=run.correction,
        run=run,
        notices=(
            *run.notices,
            *notices.run_notices(run, boots, look, flags, begun, read_hellos(boots, artefacts), benchmarks),
        ),
        benchmarks=tuple(benchmarks),
        comparisons=judgement.comparisons,
        geometric_means=judgement.geometric_means,
        values=tuple(_values(observed)),
        analyses=_analyses(observed, run, look, judgement.family) if analysed else (),
        flags=flags,
        selftest=selftests.aa,
        link_order=selftests.link_order if run.relinked else None,
        checks=tuple(checks),
        boots=tuple(boots),
        consoles=tuple(
            _console(boot, artefacts)
            for boot in boots
            if boot.status != "ok" and boot.console and not boot.was_run_again
        ),
        reproduce=run.command_to_repeat,
    )


def nouns_of(run: RunRecord) -> Nouns:
    """What its replicates are called: where instructions are counted, blocks differ in their seeds alone."""
    return {**NOUNS, "paired": "seeds"} if LANES[run.lane].is_repeatable else NOUNS


def _analyses(observed: Sequence[Observations], run: RunRecord, look: Look, family: int) -> tuple[Analysis, ...]:
    from kdyno.judge.stats.diagnostics.analysis import (
        analyse,  # brings half of scipy: only a look at them pays for it
    )

    return tuple(analyse(of_benchmark, run.baseline, look.alpha, run.margin, family) for of_benchmark in observed)


def with_unlisted(listed: Sequence[Benchmark], boots: Sequence[BootRecord]) -> list[Benchmark]:
    """Add the benchmarks that no boot could run or describe: they are shown with the reason."""
    known = {benchmark.name for benchmark in listed}
    names = {name for boot in boots for name in (*boot.unsupported, *boot.broken)}
    return list(listed) + [
        Benchmark(name=name, test=name.partition(".")[0], unit="", direction="lower", description="")
        for name in sorted(names - known)
    ]


def _values(observed: Sequence[Observations]) -> Iterator[BootValue]:
    for measured in observed:
        for variant in measured.groups:
            if (sample := measured.sample(variant)) is None:
                continue
            labels = (sample.blocks, sample.order, sample.clusters)
            blocks, order, layouts = ([None] * len(sample.values) if one is None else one.tolist() for one in labels)
            for block, place, layout, value in zip(blocks, order, layouts, sample.values.tolist(), strict=True):
                yield BootValue(
                    variant=variant, benchmark=measured.benchmark, block=block, order=place, layout=layout, value=value
                )


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
