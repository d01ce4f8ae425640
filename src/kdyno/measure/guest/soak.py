"""The records of a soak in a stream: only those that the job requested, and no more than a week may take of memory.

Rounds come as tallies, which only grow; each program reports its first failures, and memory is looked at now and then.
So the size of a soak's report doesn't depend on its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from kdyno.base.frozen import Frozen
from kdyno.measure.guest.job import Program, Soak
from kdyno.measure.guest.steps import Phase, Unasked

MOST_FAILURES = 20
"""Failures of a program that the agent reports one by one."""
MOST_TAIL = 2000
"""Bytes of the end of a failed step's output."""
LOOKS_TO_SPARE = 200
"""Looks at memory beyond those that the time of a soak has room for: programs are torn down after it."""
NANOSECONDS = 1e9

Progress = Literal["running", "over", "left-out", "lost"]
"""The state of a program; the last: the process that looked after it is gone."""
MemoryField = Literal[
    "MemFree",
    "MemAvailable",
    "Cached",
    "Shmem",
    "AnonPages",
    "Slab",
    "SReclaimable",
    "SUnreclaim",
    "KernelStack",
    "PageTables",
    "VmallocUsed",
    "Percpu",
]
"""Fields of /proc/meminfo that the agent reads, in kB; a kernel may lack some."""
Kilobytes = Annotated[int, Field(ge=0, le=1 << 40, strict=True)]


class Failure(Frozen):
    """A step of a program that failed."""

    program: str
    phase: Phase
    round: int
    """Rounds that the program had begun before it."""
    status: int
    """The outcome as a StepReport has it."""
    elapsed: float
    """Seconds."""
    tail: bytes
    """The end of the step's output."""


class Tally(Frozen):
    """The rounds of a program since the beginning of a soak."""

    rounds: int
    """Rounds whose command, and report if there is one, ended with status 0."""
    failures: int
    """Rounds in which one of these, or the set-up, failed."""
    elapsed: float
    """Seconds of the commands of all good rounds together."""
    longest: float
    """Seconds of the longest of them."""
    progress: Progress


class MemoryLook(Frozen):
    """The kernel's own figures at one moment."""

    elapsed: float
    """Seconds since the soak began."""
    at_rest: bool
    """Whether this was before the first program was set up, or after the last one was torn down, with caches given
    back.
    """
    kb: dict[MemoryField, int]
    tasks: int | None
    files: int | None
    """The number of open files."""
    tainted: int | None
    """The kernel's taint bits: Documentation/admin-guide/tainted-kernels.rst."""


class SoakReport(Frozen):
    """A soak, as far as a stream reports it."""

    tallies: dict[str, Tally] = {}
    """The last tally of each program."""
    failures: tuple[Failure, ...] = ()
    looks: tuple[MemoryLook, ...] = ()


class SoakReader:
    """The collected records of a soak; every method raises Unasked for a record that can't be right."""

    def __init__(self, soak: Soak | None, programs: Sequence[Program]) -> None:
        self.soak = soak
        self._names = {program.name for program in programs}
        self._most_looks = soak.seconds // soak.every + LOOKS_TO_SPARE if soak else 0
        self._tallies: dict[str, Tally] = {}
        self._failures: list[Failure] = []
        self._reported: dict[str, int] = {}
        self._looks: list[MemoryLook] = []

    @property
    def report(self) -> SoakReport | None:
        if self.soak is None:
            return None
        return SoakReport(tallies=self._tallies, failures=tuple(self._failures), looks=tuple(self._looks))

    def due(self) -> str | None:
        """Return a program that isn't over yet."""
        if self.soak is None:
            return None
        running = (name for name in self._names if name not in self._tallies or self._runs(name))
        return next(running, None)

    def tally(self, program: str, now: Tally) -> None:
        """Take a program's present tally; it may only have grown, and not after the program was over."""
        self._require(program)
        before = self._tallies.get(program)
        if before and (now.rounds, now.failures, now.elapsed, now.longest) != _lower_bounds(before, now):
            raise Unasked(f"the tally of {program} is smaller than it was")
        if before and before.progress != "running" and now != before:
            raise Unasked(f"it counts rounds of {program}, which was over")
        self._tallies[program] = now

    def fail(self, failure: Failure) -> None:
        self._require(failure.program)
        count = self._reported.get(failure.program, 0)
        if count == MOST_FAILURES:
            raise Unasked(f"it reports more than {MOST_FAILURES} failures of {failure.program}")
        if failure.status == 0:
            raise Unasked(f"it says that {failure.program} failed with status 0")
        self._reported[failure.program] = count + 1
        self._failures.append(failure.model_copy(update={"tail": failure.tail[-MOST_TAIL:]}))

    def look(self, look: MemoryLook) -> None:
        if self.soak is None:
            raise Unasked("it reports on memory, but no soak was requested")
        if len(self._looks) == self._most_looks:
            raise Unasked(f"it looks at memory more than {self._most_looks} times")
        if self._looks and look.elapsed < self._looks[-1].elapsed:
            raise Unasked("it looks at memory at a time that has passed")
        self._looks.append(look)

    def _require(self, program: str) -> None:
        if self.soak is None:
            raise Unasked(f"it reports on {program} in a soak, but none was requested")
        if program not in self._names:
            raise Unasked(f"it reports on {program}, which was not requested")

    def _runs(self, name: str) -> bool:
        return self._tallies[name].progress == "running"


def _lower_bounds(before: Tally, now: Tally) -> tuple[int, int, float, float]:
    """Return the lower bounds of a tally, after another one."""
    return (
        max(before.rounds, now.rounds),
        max(before.failures, now.failures),
        max(before.elapsed, now.elapsed),
        max(before.longest, now.longest),
    )
