"""Which candidate is the fastest, and by how much: chosen on one half of the blocks, judged on the other.

The best of several is flattered by the measurement that chose it. The other half doesn't know of the choice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kdyno.base.frozen import Frozen
from kdyno.base.measurement import Correction
from kdyno.judge.stats.compare import Comparison, judge
from kdyno.judge.stats.observations import Observations, ReplicateSample
from kdyno.judge.stats.verdict import Verdict
from kdyno.kernel.image import ArchName
from kdyno.kernel.routines.families import Contract, Mode, Offsets
from kdyno.understand.lab.build import BASE_SET, RoutineBuild
from kdyno.understand.lab.timing import LOAD, CallCell, RoutineTimes, class_name

MARGIN = 0.02
"""Differences up to this fraction are called equivalent."""
ALPHA = 0.05
OWN, CHOSEN = "own", "chosen"
"""The names of the kernel's own choice and of the chosen candidate for the judge."""
EVEN, ODD, ALL = slice(0, None, 2), slice(1, None, 2), slice(None)
"""Blocks: the even ones choose a candidate, which the odd ones judge; all judge one that other blocks chose."""


class Winner(Frozen):
    """The fastest candidate of some cells, and its effect against the kernel's own choice."""

    name: str
    """The chosen candidate: the kernel's own choice if that was the fastest."""
    is_own: bool
    own_cycles: float
    """Cycles of a call: the geometric mean over blocks."""
    cycles: float
    ratio: float
    """The chosen candidate's cycles by those of the kernel's own; 1 if it is that."""
    low: float | None
    high: float | None
    """The 95 % interval of the ratio."""
    verdict: Verdict | None
    """None: the kernel's own choice is the fastest."""

    @property
    def is_faster(self) -> bool:
        return self.verdict == "faster"


class MixedSizes(Frozen):
    """Calls of many sizes at many offsets."""

    name: str
    """The class of sizes, or `load`."""
    mode: Mode
    cycles: dict[str, float]
    """By candidate, cycles of a call: the geometric mean over blocks."""
    winner: Winner


class FixedCell(Frozen):
    """Calls of one size and offset."""

    mode: Mode
    size: int
    offsets: Offsets
    winner: Winner


class ComparedRow(Frozen):
    """A candidate against the kernel's own choice, with calls of mixed sizes."""

    name: str
    """The class of sizes, or `load`."""
    mode: Mode
    winner: Winner


class PatchChoice(Frozen):
    """The fastest candidate, over all mixed sizes, that a patch can put into a kernel."""

    winner: Winner
    """By the geometric mean over the rows: one weight for each."""
    rows: tuple[ComparedRow, ...]
    """The same candidate in each row: of the load if there is one, else of all classes. Empty if it is the kernel's own
    choice.
    """

    @property
    def slower_rows(self) -> list[str]:
        """Return the names of the rows in which the candidate is slower than the kernel's own choice."""
        return [f"{row.name} {row.mode}" for row in self.rows if row.winner.verdict == "slower"]


class TimedCandidate(Frozen):
    """A candidate as it was built."""

    name: str
    origin: str
    file: str
    flags: tuple[str, ...]
    contract: Contract
    problems: tuple[str, ...]


class RoutineTimesReport(Frozen):
    """The times of one family."""

    family: str
    about: str
    size: str
    offsets_meaning: str
    note: str
    own: str
    """The kernel's own choice on this processor."""
    candidates: tuple[TimedCandidate, ...]
    mixed: tuple[MixedSizes, ...]
    fixed: tuple[FixedCell, ...]
    patch: PatchChoice
    notes: tuple[str, ...]


class LabTimes(Frozen):
    """The outcome of `kdyno lab time`."""

    cpu: str
    source: str
    arch: ArchName
    """The architecture whose kernels' own choice the candidates are compared with."""
    blocks: int
    families: tuple[RoutineTimesReport, ...]


def judge_times(times: RoutineTimes, arch: ArchName = "x86_64", chosen_before: str | None = None) -> RoutineTimesReport:
    """Return the report on the times of a family; its patch is the candidate that was `chosen_before`, if given."""
    build, cells = times.build, times.cells
    names = [candidate.name for candidate in build.built]
    own = names.index(build.own)
    groups = _mixed_groups(cells)
    mixed_cycles = np.stack([_mean(times.cycles[:, places], axis=1) for places in groups.values()], axis=1)
    mixed = _winners(mixed_cycles, names, own, list(map(" ".join, groups)), "holm")
    fixed_cells = [place for place, cell in enumerate(cells) if cell.fixed]
    fixed = _winners(times.cycles[:, fixed_cells], names, own, [cells[place].name for place in fixed_cells], "bh")
    means = _mean(mixed_cycles, axis=0)
    rows = [(name, cells[places[0]].mode) for (name, _), places in groups.items()]
    return RoutineTimesReport(
        family=build.family.name,
        about=build.family.about,
        size=build.family.size,
        offsets_meaning=build.family.offsets_meaning,
        note=build.family.note,
        own=build.own,
        candidates=tuple(
            TimedCandidate(
                name=built.name,
                origin=built.candidate.origin,
                file=built.candidate.file,
                flags=built.flags,
                contract=built.candidate.contract,
                problems=built.problems,
            )
            for built in build.built
        ),
        mixed=tuple(
            MixedSizes(
                name=name,
                mode=cells[places[0]].mode,
                cycles={candidate: float(value) for candidate, value in zip(names, row, strict=True)},
                winner=winner,
            )
            for ((name, _), places), row, winner in zip(groups.items(), means, mixed, strict=True)
        ),
        fixed=tuple(
            FixedCell(mode=cells[place].mode, size=fixed_calls[0], offsets=fixed_calls[1], winner=winner)
            for place, winner in zip(fixed_cells, fixed, strict=True)
            if (fixed_calls := cells[place].fixed)
        ),
        patch=_patch_choice(build, mixed_cycles, rows, arch, chosen_before),
        notes=build.notes,
    )


def _patch_choice(
    build: RoutineBuild,
    cycles: NDArray[np.float64],
    rows: Sequence[tuple[str, Mode]],
    arch: ArchName,
    chosen_before: str | None,
) -> PatchChoice:
    """Return what a patch should put in, from cycles of shape (blocks, rows, candidates)."""
    of_load = [place for place, (name, _) in enumerate(rows) if name == LOAD]
    places = of_load or list(range(len(rows)))
    choices = [
        place
        for place, built in enumerate(build.built)
        if built.name == build.own or (built.options == BASE_SET and built.candidate.edits_for(arch))
    ]
    names = [build.built[place].name for place in choices]
    own = names.index(build.own)
    weighed = cycles[:, places][:, :, choices]
    overall = _mean(weighed, axis=1)[:, np.newaxis]
    chosen = names.index(chosen_before) if chosen_before else int(_fastest(overall)[0])
    judged = ALL if chosen_before else ODD
    [winner] = _judge_choices(overall, np.array([chosen]), names, own, ["all"], "holm", judged)
    if winner.is_own:
        return PatchChoice(winner=winner, rows=())
    in_each_row = np.full(len(places), chosen)
    row_names = [" ".join(rows[place]) for place in places]
    compared = _judge_choices(weighed, in_each_row, names, own, row_names, "holm", judged)
    return PatchChoice(
        winner=winner,
        rows=tuple(
            ComparedRow(name=rows[place][0], mode=rows[place][1], winner=row)
            for place, row in zip(places, compared, strict=True)
        ),
    )


def _mixed_groups(cells: Sequence[CallCell]) -> dict[tuple[str, str], list[int]]:
    """Return the places of the cells with mixed sizes, by the name of their sizes and their mode."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, cell in enumerate(cells):
        if not cell.fixed:
            name = LOAD if cell.size_class is None else class_name(cell.size_class)
            groups.setdefault((name, cell.mode), []).append(place)
    return groups


def _mean(cycles: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    return np.asarray(np.exp(np.log(cycles).mean(axis=axis)))


def _winners(
    cycles: NDArray[np.float64], names: Sequence[str], own: int, benchmarks: Sequence[str], correction: Correction
) -> list[Winner]:
    """Return the winner of each benchmark, from cycles of shape (blocks, benchmarks, candidates); `own` is the place of
    the kernel's own choice.
    """
    return _judge_choices(cycles, _fastest(cycles), names, own, benchmarks, correction, ODD)


def _fastest(cycles: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the place of the candidate that is the fastest in each benchmark on the blocks that choose."""
    return np.asarray(_mean(cycles[EVEN], axis=0).argmin(axis=1))


def _judge_choices(
    cycles: NDArray[np.float64],
    chosen: NDArray[np.int64],
    names: Sequence[str],
    own: int,
    benchmarks: Sequence[str],
    correction: Correction,
    judged: slice,
) -> list[Winner]:
    """Return each benchmark's chosen candidate against the kernel's own choice, by the blocks that judge."""
    judged_cycles = cycles[judged]
    observations = [
        Observations(
            benchmark=benchmarks[place],
            unit="cycles",
            direction="lower",
            description=benchmarks[place],
            groups={OWN: _sample(judged_cycles[:, place, own]), CHOSEN: _sample(judged_cycles[:, place, choice])},
        )
        for place, choice in enumerate(chosen)
        if choice != own
    ]
    comparisons: dict[str, Comparison] = {}
    if observations:
        judgement = judge(observations, (OWN, CHOSEN), OWN, margin=MARGIN, alpha=ALPHA, correction=correction)
        comparisons = {comparison.benchmark: comparison for comparison in judgement.comparisons}
    means = _mean(cycles, axis=0)
    return [
        _winner(names[choice], comparisons.get(benchmarks[place]), means[place, own], means[place, choice])
        for place, choice in enumerate(chosen)
    ]


def _sample(values: NDArray[np.float64]) -> ReplicateSample:
    return ReplicateSample(values=values, blocks=np.arange(len(values), dtype=np.int64))


def _winner(name: str, comparison: Comparison | None, own_cycles: float, cycles: float) -> Winner:
    estimate = comparison.estimate if comparison else None
    return Winner(
        name=name,
        is_own=comparison is None,
        own_cycles=float(own_cycles),
        cycles=float(cycles),
        ratio=estimate.ratio if estimate else 1.0,
        low=estimate.low if estimate else None,
        high=estimate.high if estimate else None,
        verdict=comparison.verdict if comparison else None,
    )
