"""Making samples from the output of a program's steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kdyno.base.measurement import Sample
from kdyno.measure.guest.steps import StepReport, failure
from kdyno.measure.workload.base import NotRead
from kdyno.measure.workload.metrics import AnyMetric, Output


def read_all(
    metrics: Mapping[str, AnyMetric], steps: Sequence[StepReport], pmu: Path | None
) -> tuple[list[Sample], dict[str, str]]:
    """Return one sample of each run of the command, and why there are none; both by the name of the benchmark."""
    samples, broken = list[Sample](), dict[str, str]()
    for benchmark, metric in metrics.items():
        try:
            samples += _samples(metric, benchmark, steps, pmu)
        except NotRead as why:
            broken[benchmark] = str(why)
    return samples, broken


def _samples(metric: AnyMetric, benchmark: str, steps: Sequence[StepReport], pmu: Path | None) -> list[Sample]:
    """Return the samples. Raise NotRead if a step failed, or a run's number can't be read."""
    if why := failure(steps):
        raise NotRead(why)
    return [
        Sample(benchmark=benchmark, iteration=run.run, value=metric.number(Output(run, pmu))) for run in _runs(steps)
    ]


def _runs(steps: Sequence[StepReport]) -> list[StepReport]:
    """Return the runs of the command, each with the output of its report after its own."""
    reports = {step.run: step for step in steps if step.phase == "report"}
    return [_with_report(step, reports.get(step.run)) for step in steps if step.phase == "command"]


def _with_report(run: StepReport, report: StepReport | None) -> StepReport:
    if report is None:
        return run
    # A last line without an end is a line all the same.
    end = b"\n" if run.stdout and not run.stdout.endswith(b"\n") else b""
    is_cut = run.stdout_is_cut or report.stdout_is_cut
    return replace(run, stdout=run.stdout + end + report.stdout, stdout_is_cut=is_cut)
