"""The report as data: everything that a renderer may show, and nothing that it must look up."""

from __future__ import annotations

import json
from typing import Any, Literal

from kdyno.frozen import Frozen
from kdyno.judge.compare import Comparison, GeometricMean
from kdyno.store.records import Benchmark, BootRecord, RunRecord


class Value(Frozen):
    """What a benchmark came to in one boot: the median over its iterations, in the benchmark's unit."""

    variant: str
    benchmark: str
    block: int
    value: float


class ConsoleText(Frozen):
    """The end of the console of a boot that failed or was lost, cleaned of all that could steer a terminal."""

    variant: str
    block: int
    attempt: int
    reason: str
    text: str


class RunReport(Frozen):
    """One run, judged. `kdyno report --json` prints it; its JSON schema is `schema()`."""

    schema_version: Literal[1] = 1
    run: RunRecord
    notices: tuple[str, ...]
    """What a reader must know first: the run's own notices, and what assembling the report added."""
    benchmarks: tuple[Benchmark, ...]
    comparisons: tuple[Comparison, ...]
    geometric_means: tuple[GeometricMean, ...]
    values: tuple[Value, ...]
    boots: tuple[BootRecord, ...]
    consoles: tuple[ConsoleText, ...]
    reproduce: str
    """One command line that repeats the run."""

    @property
    def others(self) -> tuple[str, ...]:
        """The variants that are compared with the baseline."""
        return tuple(variant.name for variant in self.run.variants if variant.name != self.run.baseline)


def schema() -> dict[str, Any]:
    """Return the JSON schema of the report as it is written."""
    return RunReport.model_json_schema(mode="serialization")


def to_json(report: RunReport) -> str:
    """Return the report as JSON in plain ASCII, so that what a guest said can't steer a terminal."""
    return json.dumps(report.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"
