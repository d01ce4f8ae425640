"""The interface of every workload: it gives the agent its job, and makes benchmarks and samples from the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.base.lanes import COUNTED_LANE, LANES, LaneName
from kdyno.base.measurement import Benchmark
from kdyno.measure.guest.job import Program, TestOrder
from kdyno.measure.guest.stream import AgentReport
from kdyno.measure.workload.needs import Load, Needs, Runner


class NoTests(UserError):
    message = "a workload of type `{type}` has no tests to choose from"
    hint = "leave the tests out"


class NotRead(ValueError):
    """A number, or all of them, of a boot that came to its end can't be read; the text says why."""


@dataclass(frozen=True)
class JobPart:
    """The part of a job that a workload adds."""

    iterations: int
    """Samples per benchmark and boot."""
    tests: tuple[TestOrder, ...] = ()
    programs: tuple[Program, ...] = ()


class WorkloadSettings(Frozen):
    """The settings of a workload in an experiment: every kind has a class of its own, which adds to this."""

    type: str

    runner: ClassVar[Runner] = "agent"
    """The runner that carries it out."""

    iterations_range: ClassVar[tuple[int, int]]
    """The fewest and the most samples of a boot that blocks = "auto" may choose."""

    def located(self, base: Path) -> Self:  # noqa: ARG002
        """Return this workload with everything that it names resolved; relative paths start from `base`."""
        return self

    def needs(self) -> Needs:
        """Return its needs on the machine, beyond those of every guest."""
        return Needs()

    def cpus(self) -> int:
        """How many CPUs it should have, where the lane allows more than one."""
        return 1

    def part(self, lane: LaneName) -> JobPart:
        """Its part of the job in this lane. Raises KdynoError for what the agent can't do."""
        raise NotImplementedError

    def load(self, tests: Sequence[str] = ()) -> Load:
        """Return the part of it that the emulated PMU counts: tests of the agent, and measured programs; all if none is
        named.

        A program that prints all numbers itself has no such part. Raise the errors of `part`.
        """
        part = self.part(COUNTED_LANE.name)
        orders = [order for order in part.tests if not tests or order.name in tests]
        programs = tuple(
            program for program in part.programs if program.measured and (not tests or program.name in tests)
        )
        return Load(
            tests=tuple(order.name for order in orders),
            params={order.name: order.params for order in orders if order.params},
            programs=programs,
            **dict(self.needs() if programs else Needs()),
        )

    def reading(self) -> dict[str, Any]:
        """Return what else decides the samples, besides the job: how they are read. JSON-able, part of the key of a
        boot.
        """
        return {}

    def events(self) -> tuple[str, ...]:
        """Return the emulated PMU's events that benchmarks are made of, apart from those of its clock."""
        return ()

    def benchmark_names(self) -> tuple[str, ...]:
        """Return the names of the benchmarks that it measures."""
        raise NotImplementedError

    def first_boot_seconds(self, lane: LaneName) -> float:
        """Return a guess of the seconds of a boot on a machine with 2 cores, used until one is on record."""
        return LANES[lane].first_boot_seconds

    def notices(self, lane: LaneName) -> tuple[str, ...]:  # noqa: ARG002
        """What a reader of its samples must know first."""
        return ()

    def describe_benchmarks(self, report: AgentReport) -> tuple[Benchmark, ...]:
        """Return the benchmarks that a boot had, however it ended."""
        raise NotImplementedError

    def read(self, report: AgentReport, pmu: Path | None = None) -> AgentReport:
        """Return the report of a boot that came to its end, with its benchmarks and their samples.

        `pmu` is the boot's PMU record. Raise NotRead if they can't be read.
        """
        raise NotImplementedError

    def select_tests(self, tests: Sequence[str]) -> Self:
        """Return this workload with these tests instead of its own; unchanged if none are given. Raise NoTests."""
        if tests:
            raise NoTests(type=self.type)
        return self

    def with_iterations(self, iterations: int) -> Self:  # noqa: ARG002
        """Return this workload with so many samples per benchmark and boot, which are in its range."""
        return self
