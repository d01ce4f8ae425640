"""The workload `programs`: one or several workloads that are data, and tests of the agent with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from kdyno.base.errors import UserError
from kdyno.base.lanes import LANES, TIMED_LANE, LaneName
from kdyno.base.measurement import Benchmark, Sample
from kdyno.measure.guest.agent import benchmark_names, test_orders
from kdyno.measure.guest.steps import failure
from kdyno.measure.guest.stream import AgentReport
from kdyno.measure.workload.base import JobPart, NotRead, WorkloadSettings
from kdyno.measure.workload.definition import Definition, Value, definition
from kdyno.measure.workload.needs import Needs
from kdyno.measure.workload.reading import read_all

RENAMED = re.compile(r"([a-z0-9][a-z0-9-]{0,39})=(.+)")
RUN_SECONDS = 10.0
"""Seconds, a guess: in the model lane, with the emulated PMU, one run of kdyno's own workloads took 5 to 15 s."""


class WorkloadOfOtherLane(UserError):
    message = "the workload {name} has no meaning in the lane {lane}: it is for {lanes}"
    hint = 'set lane = "{first}" in [machine], or leave the workload out'


class RunsOnAllCpus(UserError):
    message = (
        "the workload {name} cannot be measured in the lane {lane}: its runs are measured as a whole, on all CPUs, and "
        "the lane counts on one"
    )
    hint = 'set lane = "{other}" in [machine], or leave the workload out'


class NotInUse(UserError):
    message = "[workload.parameters] names {name}, which is not one of the workloads in `use`"
    hint = "these are in use: {known}"


class OneNameTwice(UserError):
    message = "two workloads in `use` have the name {name}"
    hint = 'give one of them another name in `use`: "OTHER={name}"'


class ProgramsWorkload(WorkloadSettings):
    """Workloads by name, each carried out after the other in every boot."""

    iterations_range: ClassVar[tuple[int, int]] = (1, 100)

    type: Literal["programs"] = "programs"
    use: Annotated[tuple[str, ...], Field(min_length=1, max_length=100)]
    """Names of kdyno's own workloads (`kdyno workload list`), and paths of files; `NAME=WORKLOAD` gives one another
    name, so that it can be used twice with different parameters.
    """
    tests: tuple[str, ...] = ()
    """Tests of the agent that every boot carries out first; `lmbench` stands for the 19 of LMBench."""
    parameters: dict[str, dict[str, Value]] = {}
    """By workload: parameters that differ from its defaults."""
    runs: Annotated[int, Field(ge=1, le=1000)] | None = None
    """The number of runs of each command in a boot; left out: the number in its workload."""
    definitions: tuple[Definition, ...] = ()
    """The content of the workloads in `use`; filled in when the experiment is read, and recorded with it."""

    def located(self, base: Path) -> Self:
        """Return this workload with the files of `use` read. Raise NoSuchWorkload, WorkloadUnfit, OneNameTwice and
        NotInUse.
        """
        definitions = self.definitions or tuple(_load_named(entry, base) for entry in self.use)
        names = [workload.name for workload in definitions]
        for name in names:
            if names.count(name) > 1:
                raise OneNameTwice(name=name)
        for name in self.parameters:
            if name not in names:
                raise NotInUse(name=name, known=", ".join(names))
        return self.model_copy(update={"definitions": definitions})

    def needs(self) -> Needs:
        return reduce(or_, self.definitions, Needs()).of_programs()

    def cpus(self) -> int:
        return max((workload.cpus for workload in self.definitions), default=1)

    def part(self, lane: LaneName) -> JobPart:
        """Raises WorkloadOfOtherLane, RunsOnAllCpus, NoSuchParameter and UnknownTest."""
        for workload in self.definitions:
            if lane not in workload.lanes:
                lanes = " and ".join(workload.lanes)
                raise WorkloadOfOtherLane(name=workload.name, lane=lane, lanes=lanes, first=workload.lanes[0])
            if workload.operation and LANES[lane].uses_core_pmu:
                raise RunsOnAllCpus(name=workload.name, lane=lane, other=TIMED_LANE.name)
        programs = tuple(
            workload.program(self.parameters.get(workload.name, {}), lane, self.runs) for workload in self.definitions
        )
        return JobPart(LANES[lane].iterations, test_orders(self.tests, {}) if self.tests else (), programs)

    def first_boot_seconds(self, lane: LaneName) -> float:
        seconds_of_programs = RUN_SECONDS * sum(self.runs or workload.runs for workload in self.definitions)
        return super().first_boot_seconds(lane) + seconds_of_programs

    def reading(self) -> dict[str, Any]:
        metrics = {
            definition["name"]: definition["metrics"] for definition in self.model_dump(mode="json")["definitions"]
        }
        return {"metrics": metrics}

    def benchmark_names(self) -> tuple[str, ...]:
        of_tests = benchmark_names(test_orders(self.tests, {})) if self.tests else ()
        return (*of_tests, *(name for workload in self.definitions for name in workload.benchmark_names))

    def notices(self, lane: LaneName) -> tuple[str, ...]:
        cautions = tuple(f"{workload.name}: {workload.caution}" for workload in self.definitions if workload.caution)
        virtual = "times that programs take themselves are virtual: they count instructions"
        return (*cautions, virtual) if LANES[lane].is_icount else cautions

    def describe_benchmarks(self, report: AgentReport) -> tuple[Benchmark, ...]:
        return report.benchmarks + tuple(
            Benchmark(
                name=workload.benchmark(name),
                test=workload.name,
                unit=metric.unit,
                direction=metric.direction,
                description=workload.description,
                is_part=name in workload.parts,
            )
            for workload in self.definitions
            for name, metric in workload.metrics.items()
        )

    def events(self) -> tuple[str, ...]:
        metrics = (metric for workload in self.definitions for metric in workload.metrics.values())
        return tuple(dict.fromkeys(event for metric in metrics for event in metric.events))

    def read(self, report: AgentReport, pmu: Path | None = None) -> AgentReport:
        """Read the report. A number that can't be read is broken; the boot has failed if all are."""
        values, broken = list[Sample](), dict(report.broken)
        for workload in self.definitions:
            steps = [step for step in report.steps if step.program == workload.name]
            metrics = {workload.benchmark(name): metric for name, metric in workload.metrics.items()}
            of_workload, unread = read_all(metrics, steps, pmu)
            values += of_workload
            broken |= unread
            if workload.operation and (why := failure(steps)):
                broken[workload.benchmark(workload.operation.name)] = why
        samples = [*(sample for sample in report.samples if sample.benchmark not in broken), *values]
        if not samples:
            benchmark, why_broken = next(iter(broken.items()))
            raise NotRead(f"no workload printed any of its numbers; {benchmark}: {why_broken}")
        return report.model_copy(update={"samples": tuple(samples), "broken": broken})

    def select_tests(self, tests: Sequence[str]) -> Self:
        return self.model_copy(update={"tests": tuple(tests)}) if tests else self


def _load_named(entry: str, base: Path) -> Definition:
    """Return the workload of an entry of `use`, under the name that the entry gives it. Raise NoSuchWorkload and
    WorkloadUnfit.
    """
    name, of = renamed(entry)
    workload = definition(of, base)
    return workload.model_copy(update={"name": name}) if name else workload


def renamed(entry: str) -> tuple[str, str]:
    """The name that an entry of `use` gives a workload, empty if none, and what it names."""
    match = RENAMED.fullmatch(entry)
    return (match[1], match[2]) if match else ("", entry)
