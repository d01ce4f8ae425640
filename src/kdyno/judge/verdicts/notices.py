"""The facts about a run that a reader must know first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from kdyno.base.lanes import LANES
from kdyno.base.machine_facts import recorded_pmu_clock
from kdyno.base.measurement import Benchmark
from kdyno.base.text import format_count, format_list
from kdyno.judge.stats.sequential import look_ends
from kdyno.judge.verdicts.contamination import Flag, notice
from kdyno.judge.verdicts.hellos import find_aligning, find_busy
from kdyno.judge.verdicts.looks import Look
from kdyno.measure.guest.stream_records import HelloRecord
from kdyno.store.records import BootRecord, RunRecord, progress_of


def run_notices(
    run: RunRecord,
    boots: Sequence[BootRecord],
    look: Look,
    flags: Sequence[Flag],
    begun: Sequence[datetime],
    hellos: Mapping[str, HelloRecord] | None = None,
    benchmarks: Sequence[Benchmark] = (),
) -> list[str]:
    """Return the notices: what is unfinished, failed, added later, disturbed, or was not sampled.

    `begun` says when the run, and those that it went on from, were begun; `hellos` is what agents said of the variants;
    `benchmarks` are those of the report.
    """
    hellos = hellos or {}
    return [
        *_note_unfinished(run, boots, look),
        *_note_added_blocks(run, boots, begun),
        *_note_same(run),
        *_note_busy(find_busy(hellos)),
        *_design(run, find_aligning(hellos)),
        *_note_mitigations(run),
        *_note_reruns(boots),
        *filter(None, [notice(flags, boots)]),
        *note_parts([benchmark.name for benchmark in benchmarks if benchmark.is_part], len(benchmarks)),
    ]


def _note_unfinished(run: RunRecord, boots: Sequence[BootRecord], look: Look) -> list[str]:
    progress = progress_of(run, boots, run.stopped_at)
    planned = len(progress.cells)
    failed = sum(boot.status == "failed" for boot in boots)
    notices = [
        f"{variant} was abandoned: all of its boots failed: {reason}" for variant, reason in progress.given_up.items()
    ]
    if not progress.is_complete:
        judged = (
            "verdicts may still change"
            if run.looks == 1
            else f"the {look.blocks} blocks of look {look.number} are judged"
        )
        notices.append(f"unfinished: {len(progress.ended)} of {planned} boots done; {judged}")
    if failed:
        notices.append(f"{failed} of {planned} boots failed: verdicts are about the boots that survived")
    if run.stopped_at:
        notices.append(
            f"stopped at look {look.number} of {run.looks}, after {run.stopped_at} of {run.blocks} blocks: nothing was "
            f"undecided any more; intervals cover {100 * look.confidence:.2f} %, as looking several times demands"
        )
    return notices


def _note_added_blocks(run: RunRecord, boots: Sequence[BootRecord], begun: Sequence[datetime]) -> list[str]:
    """Return a notice if the run went on from blocks whose verdicts could be seen, unless it was to be judged there
    anyway.

    Adding blocks until a verdict pleases finds false effects more often than alpha says.
    """
    for moment in sorted(begun):
        before: dict[int, set[str]] = defaultdict(set)
        for boot in boots:
            if boot.status != "lost" and boot.started < moment:
                before[boot.block].add(boot.key)
        judgeable = sum(len(keys) > 1 for keys in before.values())
        if 0 < judgeable < run.blocks and judgeable not in look_ends(run.blocks, run.looks):
            added = run.blocks - judgeable
            return [
                f"{format_count(added, 'block')} {'was' if added == 1 else 'were'} added after {judgeable} could be "
                "judged: adding blocks until a verdict pleases finds effects that don't exist; `looks` in [judge] "
                "plans it soundly"
            ]
    return []


def note_parts(parts: Sequence[str], benchmarks: int) -> list[str]:
    """Return a note on the benchmarks that are parts of others; none if the others are too few for a mean."""
    if not parts or benchmarks - len(parts) < 2:
        return []
    verb = "is a part" if len(parts) == 1 else "are parts"
    return [f"{format_list(parts)} {verb} of what other benchmarks measure, and not in the geometric mean"]


def _note_reruns(boots: Sequence[BootRecord]) -> list[str]:
    keys = [boot.key for boot in boots if boot.was_run_again]
    if not keys:
        return []
    number = len(set(keys))
    was, its = ("was", "its") if number == 1 else ("were", "their")
    return [
        f"{format_count(number, 'boot')} {was} run again ({format_count(len(keys), 'rerun')}) because other work was "
        f"on {its} core, or the core's clock moved"
    ]


def _note_same(run: RunRecord) -> list[str]:
    same = run.same_as_baseline
    if not same:
        return []
    is_, has = ("is", "has") if len(same) == 1 else ("are", "have")
    return [
        f"{format_list(same)} {is_} the same kernel as {run.baseline}, and {has} the same settings: there is nothing "
        "that could differ"
    ]


def _note_busy(busy_tasks: Mapping[str, int]) -> list[str]:
    if not busy_tasks:
        return []
    most = max(busy_tasks.values())
    work = "a task of the kernel's was" if most == 1 else f"{most} tasks of the kernel's were"
    return [
        f"{format_list(tuple(busy_tasks))}: {work} still at work when the benchmarks began, and that work is counted "
        "with theirs: the kernel may test itself, or search for devices (`kdyno boot IMAGE -- ps` shows its tasks)"
    ]


def _design(run: RunRecord, aligning_variants: Sequence[str]) -> list[str]:
    if run.layouts:
        return []
    relinked = run.relinked
    if not relinked:
        return []
    few = relinked[0] if len(relinked) == 1 else f"each of {format_list(relinked)}"
    which = "each variant" if len(relinked) == len(run.variants) - 1 else few
    aligns = "aligns" if len(aligning_variants) == 1 else "align"
    counts = (
        f" (instruction counts, too: {format_list(aligning_variants)} {aligns} returns "
        "against indirect target selection, so that a return in the lower half of a cache line takes an instruction "
        "more)"
        if aligning_variants and LANES[run.lane].is_icount
        else ""
    )
    return [
        f"layout wasn't sampled: {which} is one link order, whose own effect is part of the difference{counts}; "
        "`layouts = 6` in the experiment separates the two"
    ]


def _note_mitigations(run: RunRecord) -> list[str]:
    """Return a notice if instructions are to show what mitigations cost."""
    words = [word for variant in run.variants for word in variant.recipe.cmdline]
    if not any(word.startswith("mitigations=") for word in words):
        return []
    if not LANES[run.lane].is_icount or recorded_pmu_clock(run.machine):
        return []
    return [
        "instructions leave out what mitigations cost most, flushed predictors and instructions that wait, and the "
        "emulated CPU has many of them in hardware: `--machine pmu.family=NAME,pmu.clock=cycles` asks for a processor "
        "that lacks them"
    ]
