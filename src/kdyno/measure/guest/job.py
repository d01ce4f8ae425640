"""The job: the agent's orders for one boot. It travels in the initramfs as /kdyno/job.json."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import DEFAULT_LANE, LaneName

PROTOCOL: Final = 1
"""Version of the job and of the agent stream; crates/proto has the same number."""


class TestOrder(Frozen):
    """One test to run, and the parameters that differ from its defaults."""

    __test__ = False  # not a pytest class

    name: str
    params: dict[str, int] = {}


class VirtioPort(Frozen):
    """The virtio-serial port that the agent knows by name."""

    kind: Literal["virtio-port"] = "virtio-port"


class TcpChannel(Frozen):
    """A connection that the guest makes to a host that listens."""

    kind: Literal["tcp"] = "tcp"
    address: str
    """`10.0.2.2:7000`"""


class FileChannel(Frozen):
    """A file of the guest, or a device."""

    kind: Literal["file"] = "file"
    path: str


Channel = Annotated[VirtioPort | TcpChannel | FileChannel, Field(discriminator="kind")]
"""The way by which the agent's records leave the guest; the machine decides."""


class GcovCounters(Frozen):
    """The .gcda files that a kernel with CONFIG_GCOV_KERNEL shows in debugfs."""

    kind: Literal["gcov"] = "gcov"


class ClangCounters(Frozen):
    """The counters of a kernel that clang instrumented. Its vmlinux tells their addresses, before it boots."""

    kind: Literal["clang"] = "clang"


class MemoryCounters(Frozen):
    """A part of the kernel's memory."""

    kind: Literal["memory"] = "memory"
    address: int
    bytes: int


Counters = Annotated[GcovCounters | ClangCounters | MemoryCounters, Field(discriminator="kind")]
"""The counters of an instrumented kernel that are read before the tests and after each."""


Words = Annotated[tuple[Annotated[str, Field(pattern=r"^[^\x00]*$")], ...], Field(min_length=1)]
"""A program and its arguments."""


class CommandBenchmark(Frozen):
    """A benchmark whose samples are runs of a command. Each run is a region of the emulated PMU, like a test's loop."""

    benchmark: Annotated[str, Field(pattern=r"^[a-z0-9_-]+\.[a-z0-9_]+$", max_length=80)]
    description: str
    operations: Annotated[int, Field(ge=1, lt=2**63)]
    """The work of one run."""


class Program(Frozen):
    """A command with its preparation and its clean-up. Each step that fails ends the program, after its tear-down."""

    name: str
    in_root: bool = False
    """Whether its steps see the guest's root file system as `/`."""
    environment: dict[str, str] = {}
    set_up: Words | None = None
    """Steps before the first run."""
    command: Words
    report: Words | None = None
    """Steps after each run that succeeded: their output belongs to that run, and their work is not measured."""
    tear_down: Words | None = None
    """Steps after the last run, however the other steps ended."""
    runs: Annotated[int, Field(ge=1)] = 1
    """The number of runs of the command."""
    seconds: Annotated[int, Field(ge=1)] | None = None
    """The most seconds of a step."""
    measured: CommandBenchmark | None = None
    """The benchmark of a run of the command, if it is one: its time, and all kernel code that is executed meanwhile."""

    @property
    def steps(self) -> tuple[Words, ...]:
        """Return the commands that it runs."""
        return tuple(step for step in (self.set_up, self.command, self.report, self.tear_down) if step)


class Soak(Frozen):
    """All programs run side by side, each again and again: set-up, commands, after a failure tear-down and set-up."""

    seconds: Annotated[int, Field(ge=1)]
    """Seconds from the first set-up on. Then the running steps are ended, and every program is torn down."""
    every: Annotated[int, Field(ge=1)]
    """Seconds from one look at memory and programs to the next."""


class Job(Frozen):
    """The agent's orders: run tests, then programs, or give a person a shell."""

    v: Literal[1] = PROTOCOL
    lane: LaneName
    icount_shift: int | None = None
    """Model lane: one instruction is 2**icount_shift nanoseconds of the guest's clock."""
    iterations: int
    """Samples per benchmark and boot."""
    tests: tuple[TestOrder, ...] = ()
    programs: tuple[Program, ...] = ()
    interactive: bool = False
    channel: Channel = Field(default_factory=VirtioPort)
    counters: Counters | None = None
    soak: Soak | None = None
    """If given, programs run in this way instead of one after the other; their `runs` are then ignored."""

    def encode(self) -> bytes:
        """Return the job in the agent's format. The usual channel isn't named: each byte of an initramfs moves pages of
        the guest.
        """
        usual = {name for name in ("channel", "programs") if getattr(self, name) == getattr(USUAL, name)}
        return self.model_dump_json(exclude_none=True, exclude=usual).encode()


USUAL = Job(lane=DEFAULT_LANE.name, iterations=1)
