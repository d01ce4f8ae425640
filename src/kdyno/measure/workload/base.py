"""What every workload does: say what the agent shall do, and make benchmarks and samples of what it reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.base.lanes import Lane
from kdyno.base.measurement import Benchmark
from kdyno.measure.guest.job import Load, Program, TestOrder
from kdyno.measure.guest.stream import AgentReport


class NoTests(UserError):
    message = "a workload of type `{type}` has no tests to choose from"
    hint = "leave the tests out"


class NotRead(ValueError):
    """A number, or all of them, of a boot that came to its end can't be told; the text says why."""


@dataclass(frozen=True)
class JobPart:
    """What a workload adds to a job."""

    iterations: int
    """Samples per benchmark and boot."""
    tests: tuple[TestOrder, ...] = ()
    programs: tuple[Program, ...] = ()


@dataclass(frozen=True)
class Needs:
    """What a workload needs of the machine that it runs on."""

    packages: tuple[str, ...] = ()
    """Debian packages with its programs."""
    unpack: Mapping[str, str] = field(default_factory=dict)
    """Archives in them, and the pattern of the members that a guest finds unpacked."""
    kconfig: Mapping[str, bool | str | int] = field(default_factory=dict)
    """Of the kernel."""
    memory_mb: int = 0
    cpus: int = 1


OF_PROGRAMS: Mapping[str, bool | str | int] = {"NET": True, "UNIX": True}
"""What a kernel needs so that the agent can start a program: it hears of one that can't be executed by a Unix socket
(Rust's standard library does)."""


class WorkloadSettings(Frozen):
    """What an experiment says of its workload: every kind has a class of its own, which adds to this."""

    type: str

    iterations_range: ClassVar[tuple[int, int]]
    """The fewest and the most samples of a boot that blocks = "auto" may decide on."""

    def located(self, base: Path) -> Self:  # noqa: ARG002
        """Return the same with everything in it that it names; relative paths start from `base`."""
        return self

    def needs(self) -> Needs:
        """What it needs of the machine, beside what every guest has."""
        return Needs()

    def part(self, lane: Lane) -> JobPart:
        """Its part of the job in this lane. Raises KdynoError for what the agent can't do."""
        raise NotImplementedError

    def load(self, tests: Sequence[str] = ()) -> Load:
        """What the emulated PMU counts of it: tests of the agent, and programs that are measured; all if none is named.

        Nothing where a program says all numbers itself. Raises what `part` raises.
        """
        part, needs = self.part("model"), self.needs()
        orders = [order for order in part.tests if not tests or order.name in tests]
        programs = tuple(
            program for program in part.programs if program.measured and (not tests or program.name in tests)
        )
        of_tests = Load(
            tests=tuple(order.name for order in orders),
            params={order.name: order.params for order in orders if order.params},
        )
        if not programs:
            return of_tests
        return of_tests.model_copy(
            update={
                "programs": programs,
                "packages": needs.packages,
                "unpack": dict(needs.unpack),
                "memory_mb": needs.memory_mb,
                "kconfig": dict(needs.kconfig),
            }
        )

    def reading(self) -> dict[str, Any]:
        """What else decides the samples, beside the job: how they are read. JSON-able, part of the key of a boot."""
        return {}

    def events(self) -> tuple[str, ...]:
        """Return the emulated PMU's events that benchmarks are made of, without a clock of its."""
        return ()

    def benchmark_names(self) -> tuple[str, ...]:
        """Return the benchmarks that it measures."""
        raise NotImplementedError

    def seconds_beyond_tests(self) -> float:
        """Return a guess of what its programs add to a boot on a machine with 2 cores, for as long as none is on
        record.
        """
        return 0.0

    def notices(self, lane: Lane) -> tuple[str, ...]:  # noqa: ARG002
        """What a reader of its samples must know first."""
        return ()

    def described(self, report: AgentReport) -> tuple[Benchmark, ...]:
        """Return the benchmarks that a boot had, however it ended."""
        raise NotImplementedError

    def read(self, report: AgentReport, pmu: Path | None = None) -> AgentReport:
        """Return the report of a boot that came to its end, which has the benchmarks, with the samples that it means.

        `pmu` is the boot's PMU record. Raises NotRead if they can't be told.
        """
        raise NotImplementedError

    def only(self, tests: Sequence[str]) -> Self:
        """Return the same with these tests instead of its own; itself if there are none. Raises NoTests."""
        if tests:
            raise NoTests(type=self.type)
        return self

    def with_iterations(self, iterations: int) -> Self:  # noqa: ARG002
        """Return the same with so many samples per benchmark and boot, which lie in its range."""
        return self
