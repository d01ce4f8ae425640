"""Scaling curves of a run in the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from kdyno.judge.curves.model import ScalingReport, ScalingSeries, Work
from kdyno.judge.curves.names import split_count
from kdyno.judge.curves.series import NoCurve, NoThroughputKnown, select_by_names, series_of, taxes_of
from kdyno.judge.stats.estimate import CONFIDENCE
from kdyno.judge.stats.observations import Observations, ReplicateSample
from kdyno.judge.verdicts.model import BootValue, RunReport

ADVICE = "call benchmarks or variants NAME.p1, NAME.p2, ... (processes that each do the work) or NAME.j1, ... (jobs)"


def scaling_of_run(report: RunReport, *, work: Work | None, only: str | None, largest: int | None) -> ScalingReport:
    """Fit curves to the benchmarks, or variants, whose names end in a number of processes.

    Raise NoCurve, OtherWorkload and the errors of `series_of`.
    """
    measured = select_by_names(_observations(report))
    series, notes = series_of(measured, work=work, only=only, largest=largest) if measured else ([], [])
    if not series:
        raise NoCurve(where=f"run {report.run.id[:12]}", advice=ADVICE)
    parts = split_count(report.baseline)
    variants = {one.variant for one in series}
    baseline = parts.stem if parts and parts.stem in variants else report.baseline
    return ScalingReport(
        title=report.title,
        measured=report.measured,
        confidence=CONFIDENCE,
        notices=(*report.notices, *notes, *_more_than_cpus(report, series)),
        baseline=baseline,
        series=tuple(series),
        taxes=tuple(taxes_of(measured, series, baseline)),
        run=report.run.id,
        files=(),
        sha256=(),
    )


def curves_of(report: RunReport) -> ScalingReport | None:
    """Return the curves of a run as `scaling_of_run` does; None if it has no curves."""
    try:
        return scaling_of_run(report, work=None, only=None, largest=None)
    except (NoCurve, NoThroughputKnown):
        return None


def _more_than_cpus(report: RunReport, series: Sequence[ScalingSeries]) -> list[str]:
    """Return a note on a curve that goes beyond the machine's CPUs."""
    cpus = report.run.machine.get("cpus")
    count = len(cpus) if isinstance(cpus, list) else cpus
    largest = max((one.scaling.points[-1].n for one in series), default=0)
    if not isinstance(count, int) or largest <= count:
        return []
    has = "one CPU" if count == 1 else f"{count} CPUs"
    return [
        f"n goes up to {largest}, and the machine has {has}: beyond that a curve shows how they are shared, and a law "
        "fitted to it says nothing of machines with more"
    ]


def _observations(report: RunReport) -> list[Observations]:
    """Return the values of the report, one for each boot, as the judge takes them."""
    values: dict[tuple[str, str], list[BootValue]] = defaultdict(list)
    for value in report.values:
        values[value.benchmark, value.variant].append(value)
    return [
        Observations(
            benchmark=benchmark.name,
            unit=benchmark.unit,
            direction=benchmark.direction,
            description=benchmark.description,
            quantity=benchmark.quantity,
            groups={
                variant: _sample(values[benchmark.name, variant])
                for variant in report.variants
                if (benchmark.name, variant) in values
            },
        )
        for benchmark in report.benchmarks
    ]


def _sample(values: list[BootValue]) -> ReplicateSample:
    blocks = [value.block for value in values if value.block is not None]
    layouts = [value.layout for value in values if value.layout is not None]
    return ReplicateSample(
        values=np.array([value.value for value in values]),
        blocks=np.array(blocks, dtype=np.int64) if len(blocks) == len(values) else None,
        clusters=np.array(layouts, dtype=np.int64) if len(layouts) == len(values) else None,
    )
