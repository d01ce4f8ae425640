"""The workload `paths`: benchmarks that a kernel runs on itself, on a machine where it is a process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from kdyno.base.lanes import LANES, LaneName
from kdyno.base.measurement import Benchmark
from kdyno.measure.guest.stream import AgentReport
from kdyno.measure.paths.table import ALL, path_orders
from kdyno.measure.workload.base import JobPart, WorkloadSettings
from kdyno.measure.workload.needs import Load, Runner

ITERATIONS = {True: 15, False: 5}
"""By whether the host disturbs the lane: samples of a path. Counts repeat, and only the data differ."""
STARTING_SECONDS = 1.0
SAMPLE_SECONDS = {True: 0.0004, False: 0.25}
"""By whether the host disturbs the lane: a guess of the seconds of one sample. On a Zen 4 with 2 cores and other work
boots took 0.6 s in the lane wall, and 110 to 190 s with all events of the emulated PMU."""


class PathsWorkload(WorkloadSettings):
    """Paths through the kernel that it runs on itself."""

    iterations_range: ClassVar[tuple[int, int]] = (5, 100)
    runner: ClassVar[Runner] = "kernel"

    type: Literal["paths"] = "paths"
    tests: tuple[str, ...] = (ALL,)
    """Names of paths, of groups and of halves (`fit`, `held-out`); `all` for every path. docs/silicon.md lists them."""
    iterations: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Samples per path and boot; left out: 5 in the model lane, 15 in the wall lane."""

    def part(self, lane: LaneName) -> JobPart:
        """Raises UnknownPath."""
        return JobPart(self.iterations or ITERATIONS[LANES[lane].is_disturbed_by_host], path_orders(self.tests))

    def first_boot_seconds(self, lane: LaneName) -> float:
        part = self.part(lane)
        return STARTING_SECONDS + SAMPLE_SECONDS[LANES[lane].is_disturbed_by_host] * part.iterations * len(part.tests)

    def load(self, tests: Sequence[str] = ()) -> Load:
        orders = path_orders(self.tests)
        wanted = {order.name for order in path_orders(tests)} if tests else {order.name for order in orders}
        return Load(tests=tuple(order.name for order in orders if order.name in wanted), runner=self.runner)

    def benchmark_names(self) -> tuple[str, ...]:
        return tuple(order.name for order in path_orders(self.tests))

    def describe_benchmarks(self, report: AgentReport) -> tuple[Benchmark, ...]:
        return report.benchmarks

    def read(self, report: AgentReport, pmu: Path | None = None) -> AgentReport:  # noqa: ARG002
        return report

    def select_tests(self, tests: Sequence[str]) -> Self:
        return self.model_copy(update={"tests": tuple(tests)}) if tests else self

    def with_iterations(self, iterations: int) -> Self:
        return self.model_copy(update={"iterations": iterations})
