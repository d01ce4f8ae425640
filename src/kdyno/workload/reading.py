"""Samples of what the steps of a program wrote."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kdyno.instrument.job import Program
from kdyno.instrument.loads import find_loads, uses_loads
from kdyno.instrument.steps import StepReport, failure
from kdyno.measurement import Sample
from kdyno.workload.base import NotRead
from kdyno.workload.metrics import AnyMetric, Output


def read_all(
    metrics: Mapping[str, AnyMetric], steps: Sequence[StepReport], pmu: Path | None
) -> tuple[list[Sample], dict[str, str]]:
    """One sample of each run of the command, and why there are none; both by the name of the benchmark."""
    samples, broken = list[Sample](), dict[str, str]()
    for benchmark, metric in metrics.items():
        try:
            samples += _samples(metric, benchmark, steps, pmu)
        except NotRead as why:
            broken[benchmark] = str(why)
    return samples, broken


def _samples(metric: AnyMetric, benchmark: str, steps: Sequence[StepReport], pmu: Path | None) -> list[Sample]:
    """Raises NotRead if a step failed, or a run's number can't be told."""
    if why := failure(steps):
        raise NotRead(why)
    return [
        Sample(benchmark=benchmark, iteration=step.run, value=metric.number(Output(step, pmu)))
        for step in steps
        if step.phase == "command"
    ]


def of_loads(programs: Sequence[Program]) -> dict[str, Any]:
    """The program with kdyno's own loads, where a step runs it: part of the key of a boot. Raises ProgramMissing."""
    return {"loads": hashlib.sha256(find_loads().read_bytes()).hexdigest()} if uses_loads(programs) else {}
