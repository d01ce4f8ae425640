"""The gains of a run beside those of the same recipes on a processor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kdyno.base.lanes import LANES, PMU_CLOCKS
from kdyno.base.text import confidence, format_count, format_signed
from kdyno.boot.registry import clock_on_record
from kdyno.judge.stats.compare import GeometricMean
from kdyno.judge.verdicts.model import Confirmation, ConfirmedVariant, RunReport
from kdyno.store.records import RunRecord


def confirmation(report: RunReport, silicon: RunReport | None, left_out: Mapping[str, str]) -> Confirmation:
    """Return what a processor makes of each variant's gain; `silicon` is its run, None if there was nothing to run."""
    return Confirmation(
        run=silicon.run.id if silicon else None,
        cpu=str(silicon.run.host.get("cpu", "an unknown processor")) if silicon else None,
        notices=silicon.notices if silicon else (),
        variants=tuple(_variants(report, silicon)) if silicon else (),
        left_out=dict(left_out),
    )


def _variants(report: RunReport, silicon: RunReport) -> Iterator[ConfirmedVariant]:
    own = {mean.variant: mean for mean in report.geometric_means}
    for mean in silicon.geometric_means:
        said, timed = own.get(mean.variant), mean.estimate
        yield ConfirmedVariant(
            variant=mean.variant,
            gain=said.estimate.ratio if said and said.estimate else None,
            benchmarks=said.benchmarks if said else 0,
            silicon=timed.ratio if timed else None,
            low=timed.low if timed else None,
            high=timed.high if timed else None,
            paths=mean.benchmarks,
            sentence=f"{_said(said, report.run)}; {_timed(mean)}",
        )


def _said(mean: GeometricMean | None, run: RunRecord) -> str:
    """Return what a run gave for a variant."""
    if mean is None or mean.estimate is None:
        return "the run has no mean of it"
    gain = format_signed(mean.estimate.ratio - 1)
    return f"{_source(run)} said {gain} % on {format_count(mean.benchmarks, 'benchmark')}"


def _source(run: RunRecord) -> str:
    """Return what the gains of a run are from."""
    if clock_on_record(run.machine, run.lane) == PMU_CLOCKS["cycles"]:
        return "the model"
    return "counts of instructions" if LANES[run.lane].is_icount else "times of guests"


def _timed(mean: GeometricMean) -> str:
    """Return what the processor gave for a variant."""
    estimate = mean.estimate
    if estimate is None:
        return f"this processor has no mean of it: {mean.reason}"
    text = f"this processor said {format_signed(estimate.ratio - 1)} % on {format_count(mean.benchmarks, 'path')}"
    if estimate.low is None or estimate.high is None:
        return f"{text} (geometric means, no interval known)"
    ends = f"{format_signed(estimate.low - 1)} to {format_signed(estimate.high - 1)} %"
    return f"{text} (geometric means, {confidence(estimate.confidence)} interval {ends})"
