"""The workload `command`: any program in the guest, which prints its numbers itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kdyno.base.lanes import LANES, LaneName
from kdyno.base.measurement import Benchmark
from kdyno.measure.guest.job import Program
from kdyno.measure.guest.steps import StepReport, last_words
from kdyno.measure.guest.stream import AgentReport
from kdyno.measure.workload.base import JobPart, NotRead, WorkloadSettings
from kdyno.measure.workload.metrics import MOST_METRICS, AnyMetric, MetricName, parts_of
from kdyno.measure.workload.needs import Needs
from kdyno.measure.workload.reading import read_all

TEST = "command"
"""The test that its benchmarks belong to."""
Word = Annotated[str, Field(pattern=r"^[^\x00]*$")]


class CommandWorkload(WorkloadSettings):
    """A program in the guest, and the numbers to find in its standard output or in the counts of it."""

    iterations_range: ClassVar[tuple[int, int]] = (1, 1)

    type: Literal["command"] = "command"
    command: Annotated[tuple[Word, ...], Field(min_length=1)]
    """Program and arguments; `["sh", "-c", "..."]` for a shell's command."""
    metrics: Annotated[dict[MetricName, AnyMetric], Field(min_length=1, max_length=MOST_METRICS)]
    """The place of each benchmark's number, by its name."""

    def needs(self) -> Needs:
        return Needs().of_programs()

    def part(self, lane: LaneName) -> JobPart:  # noqa: ARG002
        return JobPart(iterations=1, programs=(self._program(),))

    def reading(self) -> dict[str, Any]:
        return self.model_dump(mode="json", include={"metrics"}, exclude_none=True)

    def _program(self) -> Program:
        return Program(name=TEST, command=self.command)

    def events(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(event for metric in self.metrics.values() for event in metric.events))

    def benchmark_names(self) -> tuple[str, ...]:
        return tuple(self.metrics)

    def notices(self, lane: LaneName) -> tuple[str, ...]:
        values = "values are printed by the command, in its own units"
        virtual = "; a time that it measures itself is virtual: it counts instructions" if LANES[lane].is_icount else ""
        return (values + virtual,)

    def describe_benchmarks(self, report: AgentReport) -> tuple[Benchmark, ...]:  # noqa: ARG002
        parts = parts_of(self.metrics)
        return tuple(
            Benchmark(
                name=name,
                test=TEST,
                unit=metric.unit,
                direction=metric.direction,
                description=f"{name}, {'as the emulated PMU counts it' if metric.events else 'as the command says it'}",
                is_part=name in parts,
            )
            for name, metric in self.metrics.items()
        )

    def read(self, report: AgentReport, pmu: Path | None = None) -> AgentReport:
        """Read the report. A metric that can't be read is broken; the boot has failed if all are, or if the command
        failed.
        """
        samples, broken = read_all(self.metrics, [finished_step(report)], pmu)
        if not samples:
            name, why_broken = next(iter(broken.items()))
            raise NotRead(f"the command printed none of its numbers; {name}: {why_broken}")
        return report.model_copy(update={"samples": tuple(samples), "unsupported": {}, "broken": broken})


def finished_step(report: AgentReport) -> StepReport:
    """Return the command's step. Raise NotRead if it failed."""
    if not report.steps or report.steps[0].status is None:
        raise NotRead("the command left no exit status")
    [step] = report.steps
    if step.status:
        raise NotRead(f"the command ended with status {step.status}{last_words(step.stderr)}")
    return step
