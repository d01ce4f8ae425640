"""The machine `uml`: a kernel for ARCH=um, which is a program of this host, runs benchmarks on itself.

A boot is a process. In the lane wall it runs on this host's processor, and samples are cycles of its core; in the lane
model the same program runs under qemu-x86_64, whose PMU counts the same machine code. Kernel threads are the only
actors: no user process is started, so that the host needs neither ptrace nor seccomp, and no root.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from kdyno.base.cpu import Cpu, read_cpu
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.frozen import digest
from kdyno.base.host import host_facts
from kdyno.base.lanes import CORE_CLOCK, COUNTED_LANE, LANES, TIMED_LANE, Clock, GuestLaneName
from kdyno.base.measurement import DISTURBED_PATHS
from kdyno.base.packages import install_advice
from kdyno.base.process import attempt, output, spawn
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.base.text import format_count
from kdyno.boot.base import (
    BootEnd,
    BootLimits,
    BootOrder,
    CpuLacks,
    Description,
    MachineSettings,
    NoShell,
)
from kdyno.boot.conditions import watched
from kdyno.boot.ending import Exit, verdict_on_boot
from kdyno.boot.host.quiet import quieten, writable_tmpfs
from kdyno.boot.platforms import Output
from kdyno.boot.pmu import Pmu, PmuOutsideModelLane, located_pmu
from kdyno.boot.watch import POLL_SECONDS, Watch
from kdyno.kernel.image import ArchName
from kdyno.measure.guest.job import FileChannel
from kdyno.measure.guest.pmu import RECORD, PmuConfig
from kdyno.measure.paths.output import DISTURBED_SHARE, PathsOutput, RequestedPaths, read_output
from kdyno.measure.paths.table import paths
from kdyno.measure.workload.needs import Needs, Runner

QEMU_USER = "qemu-x86_64"
MIB = 1 << 20
MEMORY_MB = 256
"""The memory of a kernel, where none is named."""
SIDE_BY_SIDE = 2
"""The number of parallel boots in the lane model: each occupies one CPU of the host."""
LONGEST_MEMORY = 1 << 32
"""Bytes of the file with the kernel's memory, most of them never written to. It reaches from the program to the end of
the heap, which the host puts up to 1 GB further on (arch_randomize_brk of arch/x86)."""
WORDS = (
    "nouser",
    "time-travel=inf-cpu",
    "time-travel-start=1700000000000000000",
    "con=null",
    "con0=null,fd:2",
)
"""Kernel parameters of each boot: no user processes, no ticks, the same date, messages on standard error. README.md of
data/paths explains them."""
MEANINGFUL = frozenset({"init_on_alloc", "init_on_free", "slab_nomerge", "slub_debug", "slab_debug", "hash_pointers"})
"""Parameters that change what a kernel does here. Others are of hardware, of user processes, or of options that such a
kernel hasn't got; it would ignore them in silence."""
HOST_STOPS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXFSZ})
"""Signals that come from the host: the kernel is not at fault."""
FIXED_ADDRESSES = ("setarch", "-R")
"""Heap and stack of a program at the same addresses in each boot. Linux 7.2 for ARCH=um would execute itself once more
for that, and leave an emulator."""
DIES_WITH_KDYNO = ("setpriv", "--pdeathsig", "KILL")
"""Such a kernel begins a session of its own, where no warden reaches it."""
PATIENCE = 1_000_000
"""How many looks at a disturbed core a kernel spends at most on waiting until it is calm: one or two seconds in a
boot."""
UNLIKE = (
    "a kernel as a process (ARCH=um): system call entry, page tables, copies to user memory, locks between CPUs, "
    "interrupts and mitigations are not measured"
)
NEEDS_MEMORY = "the memory of a kernel that is a process needs"


class NoMeaning(UserError):
    message = "{what} has the kernel parameter {word}, which means nothing to a kernel that is a process (ARCH=um)"
    hint = "leave it out, or choose the machine `qemu`; here there are {known}"


class NoSuchCpu(UserError):
    message = "[machine] names the CPU {cpu}, but this process may only run on {allowed}"
    hint = "`taskset -p $$` prints the CPUs that a shell may use; remove `cpu` to use the last of them"


class TmpfsFull(InfrastructureError):
    message = "{place} has {free:,} MB free, and the memory of a kernel that is a process needs {needed:,} MB there"
    hint = "remove files there, or make it larger: mount -o remount,size=1G {place}"


class QemuUserMissing(InfrastructureError):
    message = '{tool} is not installed, under which the lane "model" of the machine `uml` runs kernels'
    hint = '{way}; or choose the lane "wall", which needs none'


class NoExec(UserError):
    message = "{place} is mounted noexec: a kernel that is a process can't run there"
    hint = "choose a state directory elsewhere: --state DIR, or KDYNO_STATE"


class QemuUserWithoutPlugins(InfrastructureError):
    message = "{tool} of this host cannot load the PMU plugin {plugin}: {why}"
    hint = (
        "choose the lane \"wall\", which needs none; or Debian 12's qemu-user (Debian 13's lacks plugins), or a QEMU "
        "built with --enable-plugins, without --static"
    )


class UmlConfig(MachineSettings):
    """The settings of a kernel that is a process of this host."""

    arch: ClassVar[ArchName] = "um"
    runner: ClassVar[Runner] = "kernel"
    own_clock: ClassVar[Clock | None] = CORE_CLOCK

    type: Literal["uml"] = "uml"
    lane: GuestLaneName = TIMED_LANE.name
    """`wall`: cycles of this processor's core; `model`: counted by the emulated PMU."""
    cpu: Annotated[int, Field(ge=0, lt=8192)] | None = None
    """Lane wall: the CPU of this host that it runs on; None: the last one that kdyno may use."""
    memory_mb: Annotated[int, Field(ge=128, le=4096)] = MEMORY_MB
    pmu: PmuConfig | None = None
    """Lane model: how the emulated PMU counts; None: as by default."""
    limits: BootLimits = BootLimits()

    def located(self, base: Path) -> Self:
        return self.model_copy(update={"pmu": located_pmu(self.pmu, base)})

    def with_pmu(self, pmu: PmuConfig) -> Self:
        return self.model_copy(update={"lane": COUNTED_LANE.name, "pmu": pmu})

    def in_timed_lane(self) -> Self:
        return self.model_copy(update={"lane": TIMED_LANE.name, "pmu": None})

    def pmu_settings(self) -> PmuConfig:
        return self.pmu or PmuConfig()


def _disturbance(disturbed: Sequence[str]) -> str:
    """Return what was done to these paths; empty if there are none."""
    if not disturbed:
        return ""
    others = f" and {format_count(len(disturbed) - 1, 'other path')}" if disturbed[1:] else ""
    return (
        f"other work was on its core, or the core's clock moved, in more than {100 * DISTURBED_SHARE:.0f} % of the "
        f"repetitions of {disturbed[0]}{others}"
    )


def memory_place(megabytes: int) -> Path:
    """Return a directory in which kernels that are processes can have that much memory. Raises NoTmpfs and
    TmpfsFull.
    """
    place = writable_tmpfs(NEEDS_MEMORY, executable=True)
    free = shutil.disk_usage(place).free
    if free < megabytes * MIB:
        raise TmpfsFull(place=place, free=free // MIB, needed=megabytes)
    return place


class UmlMachine:
    """Runs kernels as processes of this host."""

    def __init__(self, config: UmlConfig) -> None:
        self.lane = LANES[config.lane]
        if config.pmu and not self.lane.is_icount:
            raise PmuOutsideModelLane(lane=config.lane)
        self.config = config
        self.pmu = Pmu(config.pmu_settings()) if self.lane.is_icount else None

    @cached_property
    def place(self) -> Path:
        """Return the directory for the kernel's memory. Raises NoTmpfs and TmpfsFull."""
        return memory_place(self.config.memory_mb * (SIDE_BY_SIDE if self.pmu else 1))

    @cached_property
    def _fixed(self) -> tuple[str, ...]:
        """Return the words that leave out this host's random addresses, if it lets a program do so."""
        return FIXED_ADDRESSES if attempt([*FIXED_ADDRESSES, "true"]).returncode == 0 else ()

    def describe(self) -> Description:
        """Describe the machine. Raises NoTmpfs, TmpfsFull, NoSuchCpu, QemuUserMissing and QemuUserWithoutPlugins."""
        config, place = self.config, self.place
        facts: dict[str, Any] = {"type": "uml", "memory_mb": config.memory_mb, "cmdline": list(WORDS)}
        facts["fixed_addresses"] = bool(self._fixed)
        notices = [UNLIKE]
        if self.pmu:
            facts |= {"qemu": self._qemu_version(), **self.pmu.facts()}
            notices += self.pmu.notices()
        else:
            self._require_cpu_allowed()
            facts |= {"pinned": config.cpu, "memory_in": str(place)}
        return Description(
            lane=config.lane,
            parallel=SIDE_BY_SIDE if self.lane.is_parallel else 1,
            facts=facts,
            host=host_facts(),
            limits=config.limits,
            channel=FileChannel(path="stdout"),
            pmu=self.pmu.config if self.pmu else None,
            is_emulated=self.pmu is not None,
            notices=tuple(notices),
        )

    def _qemu_version(self) -> str:
        """Return the version of qemu-x86_64. Raises QemuUserMissing and QemuUserWithoutPlugins."""
        assert self.pmu is not None
        if shutil.which(QEMU_USER) is None:
            raise QemuUserMissing(tool=QEMU_USER, way=install_advice("qemu-user"))
        if why := self.pmu.why_not_in_user_mode(QEMU_USER):
            raise QemuUserWithoutPlugins(tool=QEMU_USER, plugin=self.pmu.plugin, why=why)
        return output([QEMU_USER, "--version"]).split("version ", 1)[1].split()[0]

    def _require_cpu_allowed(self) -> None:
        allowed = os.sched_getaffinity(0)
        if self.config.cpu is not None and self.config.cpu not in allowed:
            raise NoSuchCpu(cpu=self.config.cpu, allowed=", ".join(map(str, sorted(allowed))))

    def cpu(self) -> Cpu:
        return read_cpu()

    def require_cpu(self, flags: Sequence[str], what: str) -> None:
        cpu = read_cpu()
        if missing := sorted(set(flags) - cpu.flags):
            raise CpuLacks(what=what, missing=", ".join(missing), cpu=cpu.name)

    def require_options(self, kernel: Path, output: Output) -> None:
        """Accept any kernel: those that are built for this machine write to standard output."""

    def require_cmdline(self, words: Sequence[str], what: str) -> None:
        """Raise NoMeaning for parameters that change nothing here."""
        for word in words:
            if word.partition("=")[0].replace("-", "_") not in MEANINGFUL:
                raise NoMeaning(what=what, word=word, known=", ".join(sorted(MEANINGFUL)))

    def provide(self, needs: Needs, state: State, talk: Talk) -> None:
        """Provide nothing: kernels run their benchmarks on themselves."""

    def stand_in(self, variant: str, block: int) -> str:
        return digest([variant, block])

    def converse(self, order: BootOrder) -> int:  # noqa: ARG002
        raise NoShell(type=self.config.type)

    def boot(self, order: BootOrder) -> BootEnd:
        """Run the kernel, watch it, and read its output. Raises NoExec."""
        if os.statvfs(order.directory).f_flag & os.ST_NOEXEC:
            raise NoExec(place=order.directory)
        with watched() as conditions:
            end, read = self._boot(order)
        if self.pmu:
            return replace(end, conditions=conditions)
        disturbed = read.disturbed if end.status == "ok" else ()
        marks = {"clock_moved": read.moved, "core_shared": read.shared, DISTURBED_PATHS: len(disturbed)}
        return replace(end, conditions={**conditions, **marks}, disturbance=_disturbance(disturbed))

    def _boot(self, order: BootOrder) -> tuple[BootEnd, PathsOutput]:
        """Return the end of the boot, and its output."""
        console, stream = order.directory / "console.log", order.directory / "stream.txt"
        pmu = self.pmu if order.is_counted else None
        program = order.directory / "linux"
        command = self.command(order, program, pmu)
        assert order.kernel is not None
        shutil.copy(order.kernel, program)  # its pages lie elsewhere in each boot
        start = time.monotonic()
        watch = Watch(console, stream, self.config.limits)
        stopped = None
        with (
            stream.open("wb") as samples,
            console.open("wb") as messages,
            spawn(
                command, cwd=order.directory, stdout=samples, stderr=messages, env={"TMPDIR": str(self.place)}
            ) as kernel,
        ):
            watch.bound(kernel.pid, LONGEST_MEMORY)
            if not self.pmu:
                quieten(kernel.pid, self.config.cpu)
            while kernel.poll() is None and stopped is None and not order.cancelled.is_set():
                time.sleep(POLL_SECONDS)
                stopped = watch.broken_limit()
            kernel.kill()  # it is in a session of its own
        seconds = time.monotonic() - start
        stopped = watch.cut() or stopped
        program.unlink()
        if order.cancelled.is_set():
            left = Exit(lost="interrupted")
        else:
            lost = None if stopped else self._why_lost(kernel.returncode, order.directory)
            left = Exit(stopped=stopped or _signal_name(kernel.returncode), lost=lost)
        read = read_output(stream, self._requested(order))
        status, reason = verdict_on_boot(left, read.report, console)
        end = BootEnd(status, reason, seconds, watch.ready, command, console, stream, read.report)
        return (pmu.applied(end, order.directory / RECORD) if pmu else end), read

    def command(self, order: BootOrder, program: Path, pmu: Pmu | None) -> tuple[str, ...]:
        """Return the command of a boot of this program."""
        names = ",".join(test.name for test in order.job.tests)
        under = (QEMU_USER, *pmu.user_words(order)) if pmu else (QEMU_USER, *order.plugin) if self.pmu else ()
        own = (f"kdyno.repetitions={order.job.iterations}", f"kdyno.seed={order.seed + 1}", f"kdyno.paths={names}")
        patience = f"kdyno.patience={0 if self.pmu else PATIENCE}"
        return (
            *DIES_WITH_KDYNO,
            *self._fixed,
            *under,
            str(program),
            f"mem={self.config.memory_mb}M",
            *WORDS,
            *own,
            patience,
            *order.cmdline,
        )

    def _requested(self, order: BootOrder) -> RequestedPaths:
        known = paths()
        wanted = [known[test.name] for test in order.job.tests]
        clock = self.lane.clock if self.pmu else CORE_CLOCK
        return RequestedPaths(self.config.lane, clock, wanted, order.job.iterations, is_timed=self.pmu is None)

    def _why_lost(self, status: int, directory: Path) -> str | None:
        """Return why the host, not the kernel, ended a boot; None if it didn't."""
        if -status in HOST_STOPS:
            return f"it was killed by signal {-status}"
        for place in (directory, self.place):
            if shutil.disk_usage(place).free < MIB:
                return f"the disk that holds {place} is full"
        return None


def _signal_name(status: int) -> str | None:
    """Return by which signal a process ended, for people; None if it ended by itself."""
    return f"ended by signal {-status} ({signal.strsignal(-status) or 'unknown'})" if status < 0 else None
