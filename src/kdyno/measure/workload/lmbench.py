"""The workload `lmbench`: tests that the agent itself carries out and measures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from kdyno.base.errors import UserError
from kdyno.base.lanes import LANES, LaneName
from kdyno.base.measurement import Benchmark
from kdyno.measure.guest.agent import benchmark_names, test_orders
from kdyno.measure.guest.stream import AgentReport
from kdyno.measure.paths.table import paths
from kdyno.measure.workload.base import JobPart, WorkloadSettings


class PathIsNotATest(UserError):
    message = "the workload names the test {name}, which is a path: only a kernel that is a process runs it"
    hint = 'take the machine `uml`: type = "uml" in [machine], or --machine uml'


class LmbenchWorkload(WorkloadSettings):
    """The tests that the agent carries out, and their settings."""

    iterations_range: ClassVar[tuple[int, int]] = (3, 100)

    type: Literal["lmbench"] = "lmbench"
    tests: tuple[str, ...] = ("lmbench",)
    """Names of tests; `lmbench` stands for the 19 of LMBench, `all` for every test."""
    iterations: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Samples per benchmark and boot; left out: 7 in the model lane, 11 in the wall lane."""
    params: dict[str, dict[str, int]] = {}
    """By test: parameters that differ from the test's defaults; `kdyno-agent list` shows them."""

    def part(self, lane: LaneName) -> JobPart:
        """Raises PathIsNotATest, UnknownTest and UnknownParameter."""
        for name in self.tests:
            if name in paths():
                raise PathIsNotATest(name=name)
        return JobPart(self.iterations or LANES[lane].iterations, test_orders(self.tests, self.params))

    def benchmark_names(self) -> tuple[str, ...]:
        return benchmark_names(test_orders(self.tests, self.params))

    def describe_benchmarks(self, report: AgentReport) -> tuple[Benchmark, ...]:
        return report.benchmarks

    def read(self, report: AgentReport, pmu: Path | None = None) -> AgentReport:  # noqa: ARG002
        return report

    def select_tests(self, tests: Sequence[str]) -> Self:
        return self.model_copy(update={"tests": tuple(tests)}) if tests else self

    def with_iterations(self, iterations: int) -> Self:
        return self.model_copy(update={"iterations": iterations})
