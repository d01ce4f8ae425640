"""What a stream says of a soak: only what the job asked for, and no more than a week of it may take of memory.

Rounds come as tallies, which only grow; of failures each program tells its first, and memory is looked at now and then.
So what is kept of a soak doesn't depend on how long it lasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from kdyno.base.frozen import Frozen
from kdyno.measure.guest.job import Program, Soak
from kdyno.measure.guest.steps import Phase, Unasked

MOST_FAILURES = 20
"""Failures of a program that the agent tells one by one."""
MOST_TAIL = 2000
"""Bytes of the end of what a failed step wrote."""
LOOKS_TO_SPARE = 200
"""Looks at memory beyond those that the time of a soak has room for: programs are torn down after it."""
NANOSECONDS = 1e9

Progress = Literal["running", "over", "left-out", "lost"]
"""How far a program is; the last: the process that looked after it is gone."""
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
    """As a StepReport has it."""
    elapsed: float
    """Seconds."""
    tail: bytes
    """The end of what it wrote."""


class Tally(Frozen):
    """What a program did from the beginning of a soak on."""

    rounds: int
    """Its command, and its report if it has one, came to their end, with status 0."""
    failures: int
    """One of these, or its set-up, did not."""
    elapsed: float
    """Seconds that the commands of all good rounds took together."""
    longest: float
    """Seconds of the longest of them."""
    progress: Progress


class MemoryLook(Frozen):
    """The kernel's own account at one moment."""

    elapsed: float
    """Seconds since the soak began."""
    at_rest: bool
    """Before the first program was set up, or after the last one was torn down, with caches given back."""
    kb: dict[MemoryField, int]
    tasks: int | None
    files: int | None
    """Open files."""
    tainted: int | None
    """Bits for what has happened to the kernel: Documentation/admin-guide/tainted-kernels.rst."""


class SoakReport(Frozen):
    """A soak, as far as a stream tells of it."""

    tallies: dict[str, Tally] = {}
    """By program, the last of each."""
    failures: tuple[Failure, ...] = ()
    looks: tuple[MemoryLook, ...] = ()


class SoakReader:
    """Collects what a stream says of a soak; every method raises Unasked for what can't be."""

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
        """A program's tally, as it is now; it may only have grown, and not at all once the program was over."""
        self._require(program)
        before = self._tallies.get(program)
        if before and (now.rounds, now.failures, now.elapsed, now.longest) != _grown(before, now):
            raise Unasked(f"the tally of {program} is smaller than it was")
        if before and before.progress != "running" and now != before:
            raise Unasked(f"it counts rounds of {program}, which was over")
        self._tallies[program] = now

    def fail(self, failure: Failure) -> None:
        self._require(failure.program)
        count = self._reported.get(failure.program, 0)
        if count == MOST_FAILURES:
            raise Unasked(f"it tells of more than {MOST_FAILURES} failures of {failure.program}")
        if failure.status == 0:
            raise Unasked(f"it says that {failure.program} failed with status 0")
        self._reported[failure.program] = count + 1
        self._failures.append(failure.model_copy(update={"tail": failure.tail[-MOST_TAIL:]}))

    def look(self, look: MemoryLook) -> None:
        if self.soak is None:
            raise Unasked("it tells of memory, and no soak was asked for")
        if len(self._looks) == self._most_looks:
            raise Unasked(f"it looks at memory more than {self._most_looks} times")
        if self._looks and look.elapsed < self._looks[-1].elapsed:
            raise Unasked("it looks at memory at a time that is over")
        self._looks.append(look)

    def _require(self, program: str) -> None:
        if self.soak is None:
            raise Unasked(f"it tells of {program} in a soak, and none was asked for")
        if program not in self._names:
            raise Unasked(f"it tells of {program}, which was not asked for")

    def _runs(self, name: str) -> bool:
        return self._tallies[name].progress == "running"


def _grown(before: Tally, now: Tally) -> tuple[int, int, float, float]:
    """What a tally is at least, after another one."""
    return (
        max(before.rounds, now.rounds),
        max(before.failures, now.failures),
        max(before.elapsed, now.elapsed),
        max(before.longest, now.longest),
    )
