"""What a load needs of the machine that it runs on, and how the needs of several are joined.

A new requirement is a field of Needs and a line of `_joined`: then workload files have it, and loads, and what joins
them. Guests get it from `MachineSettings.at_least`, `Machine.provide`, or the recipes of their kernels.
"""

from __future__ import annotations

from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.measure.guest.job import Program

Runner = Literal["agent", "kernel"]
"""The runner of a load: the agent in a guest or on this host, or the kernel itself."""


class Needs(Frozen):
    """What a load needs of the machine, beside what every guest has."""

    packages: tuple[str, ...] = ()
    """Debian packages with its programs. A guest gets a root file system of them; on the machine `local` they must be
    installed. Without any, a guest's programs are busybox's and kdyno's own."""
    unpack: dict[str, str] = {}
    """Archives (tar) in its packages, by their path from the root, and a pattern of the names of members. A guest finds
    these members unpacked beside where the archive was; `local` finds the archive."""
    kconfig: dict[str, bool | str | int] = {}
    """The options that a kernel must have for it, in addition to those of a root file system."""
    memory_mb: int | None = 0
    """The least that a guest should have; None or 0 where any will do."""

    def __or__(self, after: Needs) -> Needs:
        """What two loads need of one machine that run one after the other: the larger of the two memories.

        Where both say something of one archive or symbol, what `after` says counts.
        """
        return self._joined(after, max(self.memory_mb or 0, after.memory_mb or 0))

    def at_once(self, beside: Needs) -> Needs:
        """The same of two loads that run at the same time: the sum of the two memories."""
        return self._joined(beside, (self.memory_mb or 0) + (beside.memory_mb or 0))

    def _joined(self, other: Needs, memory_mb: int) -> Needs:
        return Needs(
            packages=tuple(dict.fromkeys(self.packages + other.packages)),
            unpack=self.unpack | other.unpack,
            kconfig=self.kconfig | other.kconfig,
            memory_mb=memory_mb,
        )

    def of_programs(self) -> Needs:
        """With what a kernel needs to start programs, and for a root file system if there are packages."""
        return OF_PROGRAMS | (OF_ROOT if self.packages else Needs()) | self


OF_PROGRAMS = Needs(kconfig={"NET": True, "UNIX": True})
"""The needs of the agent to start a program: a Unix socket reports to it a program that can't be executed
(Rust's standard library does)."""
OF_ROOT = Needs(
    kconfig={
        "BLOCK": True,
        "BLK_DEV": True,
        "BLK_DEV_LOOP": True,
        "MISC_FILESYSTEMS": True,
        "SQUASHFS": True,
        "SQUASHFS_LZ4": True,
        "OVERLAY_FS": True,
        "TIMERFD": True,
        "SIGNALFD": True,
        "INOTIFY_USER": True,
        "SYSVIPC": True,
        "AIO": True,
    }
)
"""The needs of a guest's root file system, and those of a distribution's programs."""


class Load(Needs):
    """What is carried out in a boot that is made to be counted, and what it needs of the machine."""

    tests: tuple[str, ...] = ()
    """Names of tests and suites, as the agent knows them."""
    params: dict[str, dict[str, int]] = {}
    """By test: parameters that differ from the test's defaults."""
    programs: tuple[Program, ...] = ()
    memory_mb: int = 0
    runner: Runner = "agent"

    @property
    def names(self) -> tuple[str, ...]:
        """Of the tests and programs, for people."""
        return (*self.tests, *(program.name for program in self.programs))

    @property
    def needs(self) -> Needs:
        """Without what is carried out."""
        return Needs() | self
