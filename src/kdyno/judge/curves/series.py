"""From measured values to series of throughput, and the laws fitted to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kdyno.base.errors import UserError
from kdyno.base.text import format_list
from kdyno.judge.curves.model import ScalingSeries, ScalingValue, Tax, Work
from kdyno.judge.curves.names import split_count
from kdyno.judge.stats.observations import Observations, ReplicateSample
from kdyno.judge.stats.scaling.both_laws import scaling
from kdyno.judge.stats.scaling.levels import ProcessLevel, ratio_of


class NoCurve(UserError):
    message = "{where} has no workload measured with several numbers of processes"
    hint = "{advice}"


class NoWork(UserError):
    message = "{name}: lower is better, so the work of n processes must be given"
    hint = "give --work copies if each did the whole work, --work shared if they shared one"


class NoDirection(UserError):
    message = "{name}: nothing says whether lower or higher is better"
    hint = "give --lower for times, --higher for rates"


class NoThroughputKnown(UserError):
    message = "{name} is a number of things ({unit}), which gives no throughput"
    hint = "use times or rates: a run in the lane wall, or a file with them"


class OtherWorkload(UserError):
    message = "no workload is called {name!r}"
    hint = "workloads: {known}"


@dataclass(frozen=True)
class MeasuredSeries:
    """The values of one workload, variant and n, as they were measured."""

    workload: str
    variant: str
    work: Work | None
    n: int
    of: Observations
    sample: ReplicateSample


Key = tuple[str, str, Work | None]
"""Workload, variant, work."""


def select_by_names(observations: Iterable[Observations]) -> list[MeasuredSeries]:
    """Return the measurements named NAME.pN, NAME.jN or NAME.tN: of benchmarks, else of variants. All others are left
    out.
    """
    measured = []
    for observed in observations:
        benchmark = split_count(observed.benchmark)
        for variant in observed.groups:
            sample = observed.sample(variant)
            parts = benchmark or split_count(variant)
            if sample is None or parts is None:
                continue
            names = (parts.stem, variant) if benchmark else (observed.benchmark, parts.stem)
            measured.append(MeasuredSeries(*names, parts.work, parts.n, observed, sample))
    return measured


def series_of(
    measured: Sequence[MeasuredSeries], *, work: Work | None, only: str | None, largest: int | None
) -> tuple[list[ScalingSeries], list[str]]:
    """Fit every series that has several n, and return notes on the others. `work` overrides the names.

    Raise OtherWorkload, NoDirection, NoWork, NoThroughputKnown and the errors of the judge.
    """
    known = list(dict.fromkeys(value.workload for value in measured))
    if only is not None and only not in known:
        raise OtherWorkload(name=only, known=format_list(known, 20))
    levels: dict[Key, dict[int, MeasuredSeries]] = {}
    for value in measured:
        if only in (None, value.workload):
            key = (value.workload, value.variant, work or value.work)
            levels.setdefault(key, {})[value.n] = value
    series, notes = [], []
    for key, by_n in levels.items():
        if len(by_n) < 2:
            notes.append(f"{key[0]} of {key[1]} was measured at n = {next(iter(by_n))} alone: left out")
            continue
        try:
            series.append(_series(key, by_n, largest))
        except NoThroughputKnown as error:
            notes.append(f"left out: {error}")
            if len(notes) == len(levels):
                raise
    return series, notes


def _series(key: Key, by_n: Mapping[int, MeasuredSeries], largest: int | None) -> ScalingSeries:
    levels = [ProcessLevel(n, throughput(by_n[n], key[2])) for n in sorted(by_n)]
    return ScalingSeries(
        workload=key[0],
        variant=key[1],
        work=key[2],
        unit=unit_of(by_n[levels[0].n].of),
        values=tuple(
            ScalingValue(n=level.n, block=block, throughput=throughput)
            for level in levels
            for block, throughput in zip(
                [None] * len(level.sample.values) if level.sample.blocks is None else level.sample.blocks.tolist(),
                level.sample.values.tolist(),
                strict=True,
            )
        ),
        scaling=scaling(levels, largest),
    )


def throughput(measured: MeasuredSeries, work: Work | None) -> ReplicateSample:
    """Return work per time: a rate unchanged, which must be that of all processes together; for a time, work / time,
    where work is n if each process does the whole of it, and 1 if they share it.

    Raise NoDirection, NoWork and NoThroughputKnown.
    """
    observed, name = measured.of, measured.workload
    if observed.direction is None:
        raise NoDirection(name=name)
    if observed.quantity == "count":
        raise NoThroughputKnown(name=name, unit=observed.unit)
    if observed.direction == "higher":
        return measured.sample
    if work is None:
        raise NoWork(name=name)
    return replace(measured.sample, values=(measured.n if work == "copies" else 1) / measured.sample.values)


def unit_of(observed: Observations) -> str:
    """Return the unit of throughput."""
    return observed.unit if observed.direction == "higher" else f"1/{observed.unit or 'time'}"


def taxes_of(measured: Sequence[MeasuredSeries], series: Sequence[ScalingSeries], baseline: str) -> list[Tax]:
    """Return the cost of each variant for a single process, for workloads whose baseline was also measured at n = 1."""
    single = {
        (one.workload, one.variant, one.work): ProcessLevel(1, throughput(value, one.work))
        for one in series
        for value in measured
        if (value.workload, value.variant, value.n) == (one.workload, one.variant, 1)
    }
    taxes = []
    for (workload, variant, work), level in single.items():
        base = single.get((workload, baseline, work))
        if variant != baseline and base is not None:
            ratio, low, high = ratio_of(level, base)
            taxes.append(Tax(workload=workload, work=work, variant=variant, ratio=ratio, low=low, high=high))
    return taxes
