"""The machine `qemu`: a direct kernel boot with an initramfs; console and agent stream are written to files."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kdyno.base.cpu import Cpu, read_cpu
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.host import host_facts
from kdyno.base.lanes import LANES
from kdyno.base.process import ToolMissing, output, spawn
from kdyno.base.state import State
from kdyno.base.surroundings import passed_environment
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, BootOrder, CpuLacks, Description, MachineSettings
from kdyno.boot.conditions import watched
from kdyno.boot.disk import CACHE, MIB, new_disk
from kdyno.boot.ending import Exit, verdict_on_boot
from kdyno.boot.guest_root import GuestRoot, guest_root
from kdyno.boot.initramfs import START_WORD, InitramfsEntry, find_busybox, guest_tools, initramfs
from kdyno.boot.kvm import why_not_kvm
from kdyno.boot.modules import loaded
from kdyno.boot.platforms import NEEDS, Output, port_needs, require_options
from kdyno.boot.pmu import Pmu, family_of
from kdyno.boot.qemu_config import QemuConfig, require_one_lane
from kdyno.boot.qemu_options import PORT, Guest, qemu_options
from kdyno.boot.sandbox import SANDBOX, why_no_sandbox
from kdyno.boot.share import Share, read_share, require_share
from kdyno.boot.watch import POLL_SECONDS, Watch
from kdyno.measure.guest.agent import expected_records, find_agent
from kdyno.measure.guest.counters import COUNTERS
from kdyno.measure.guest.pmu import RECORD
from kdyno.measure.guest.stream import read_stream
from kdyno.measure.workload.needs import Needs

if TYPE_CHECKING:
    from kdyno.measure.cycles.family import GuestCpu

QEMU = "qemu-system-x86_64"
PORT_MISSING = f"no virtio port {PORT}"
"""The agent's message on the console if the port is missing."""
TERMINAL = ("-chardev", "stdio,id=terminal,mux=on,signal=off", "-monitor", "none")
"""The options for the console on this terminal. `mux` provides Ctrl-A X, without a monitor: a guest can make a terminal
send text, which the monitor would execute."""
SIDE_BY_SIDE = 2
"""The number of parallel boots, where samples allow it: an emulated CPU occupies one CPU of the host."""
FREE_SPACE_NEEDED = 1_000_000
"""The free bytes after a boot below which its files may be incomplete."""
HUGE_PAGES_FROM_MB = 640
"""The memory for huge pages: Linux requires 512 MB besides its own memory (hugepage_init() of mm/huge_memory.c)."""


class KvmUnusable(InfrastructureError):
    message = "KVM cannot be used here: {why}"
    hint = 'set accel = "tcg" or "auto", or repair KVM'


class TooSmallForHugePages(UserError):
    message = "{what}: a guest with {memory} MB ignores `{word}`: Linux disables huge pages of 2 MB below 512 MB"
    hint = "set memory_mb = 1024 in [machine]; the 512 MB do not include the kernel's own memory"


class QemuMachine:
    """Boots images under QEMU on this host."""

    def __init__(self, config: QemuConfig) -> None:
        self.lane = LANES[config.lane]
        require_one_lane(config)
        self.config = config
        self.pmu = Pmu(config.pmu) if config.pmu else None
        self._root: GuestRoot | None = None
        self._share: Share | None = None
        self._asked, self._lacking = set[str](), set[str]()
        """The missing flags by the flags that QEMU was asked about."""

    @cached_property
    def version(self) -> str:
        """Return the version, such as `7.2.22`. Raises ToolMissing without QEMU."""
        if shutil.which(QEMU) is None:
            raise ToolMissing(tool=QEMU)
        return output([QEMU, "--version"]).split("version ", 1)[1].split()[0]

    @cached_property
    def _kvm_fault(self) -> str | None:
        return why_not_kvm(QEMU)

    @cached_property
    def accel(self) -> Literal["kvm", "tcg"]:
        """Return the accelerator in use. Raises KvmUnusable if KVM was requested and doesn't work."""
        if self.lane.is_icount or self.config.accel == "tcg":
            return "tcg"
        if self._kvm_fault is None:
            return "kvm"
        if self.config.accel == "kvm":
            raise KvmUnusable(why=self._kvm_fault)
        return "tcg"

    @cached_property
    def cpu_model(self) -> str:
        if self.config.cpu:
            return self.config.cpu
        if self._family_cpu:
            return self._family_cpu.qemu
        return "host" if self.accel == "kvm" else "max"

    @cached_property
    def _family_cpu(self) -> GuestCpu | None:
        """Return the CPU of a family, if the guest has one: in the model lane, unless the user names another."""
        if self.config.cpu or not self.lane.is_icount:
            return None
        return family_of(self.config.pmu_settings()).cpu

    @cached_property
    def _tools(self) -> list[InitramfsEntry]:
        return guest_tools()

    def describe(self) -> Description:
        config = self.config
        if config.share:
            require_share(config.share)
        facts = {
            "type": "qemu",
            "qemu": self.version,
            "accel": self.accel,
            "platform": config.platform,
            "cpu": self.cpu_model,
            "cpus": config.cpus,
            "memory_mb": config.memory_mb,
            "icount_shift": config.icount_shift if self.lane.is_icount else None,
            "cmdline": list(self._guest.cmdline),
            "agent": hashlib.sha256(find_agent().read_bytes()).hexdigest(),
            "busybox": hashlib.sha256(find_busybox().read_bytes()).hexdigest(),
        }
        if self._root:
            facts |= {"root": self._root.digest, "packages": list(self._root.archives)}
        if config.disk_mb is not None:
            facts |= {"disk_mb": config.disk_mb, "disk_cache": CACHE}
        if config.share:
            facts["share"] = str(config.share)
        if self._share:
            facts["share_digest"] = self._share.digest
        if self.pmu:
            self.pmu.require(QEMU)
            facts |= self.pmu.facts()
        return Description(
            lane=config.lane,
            parallel=SIDE_BY_SIDE if self.lane.is_parallel else 1,
            facts=facts,
            host=host_facts(),
            limits=config.limits,
            icount_shift=config.icount_shift if self.lane.is_icount else None,
            shared=(config.share,) if config.share else (),
            pmu=config.pmu,
            is_emulated=self.accel == "tcg",
            notices=self._notices(),
        )

    def cpu(self) -> Cpu:
        return read_cpu()

    def require_cpu(self, flags: Sequence[str], what: str) -> None:
        if unasked := set(flags) - self._asked:
            from kdyno.boot.cpu_flags import missing_flags

            self._lacking.update(missing_flags(QEMU, self.accel, self.cpu_model, sorted(unasked)))
            self._asked.update(unasked)
        if missing := [flag for flag in flags if flag in self._lacking]:
            raise CpuLacks(what=what, missing=", ".join(missing), cpu=self.cpu_model)

    def _notices(self) -> tuple[str, ...]:
        if self.pmu:
            unlike = self._unlike_family()
            return (*self.pmu.notices(), *((unlike,) if unlike else ()))
        if self.lane.is_icount or self.accel == "kvm":
            return ()
        why = f"KVM cannot be used here ({self._kvm_fault}); " if self.config.accel == "auto" else ""
        return (f"{why}the wall lane runs on TCG: its times are an emulator's, not a processor's",)

    def _unlike_family(self) -> str | None:
        """Return how kernel paths on a CPU that the user named differ from those on the PMU's family."""
        if self.pmu is None or self.config.cpu is None:
            return None
        from kdyno.boot.cpu_flags import guest_cpu

        vendor, has_smap = guest_cpu(QEMU, self.accel, self.config.cpu)
        return self.pmu.unlike(self.config.cpu, vendor, has_smap)

    def require_options(self, kernel: Path, output: Output) -> None:
        require_options(kernel, self.config.platform, output, self.config.cpus, self.config.more_needs)

    def require_cmdline(self, words: Sequence[str], what: str) -> None:
        """Raise TooSmallForHugePages: a kernel accepts any parameters, but disables huge pages in a small guest."""
        ignored = [word for word in words if word in ("transparent_hugepage=always", "transparent_hugepage=madvise")]
        if ignored and self.config.memory_mb < HUGE_PAGES_FROM_MB:
            raise TooSmallForHugePages(what=what, word=ignored[0], memory=self.config.memory_mb)

    def provide(self, needs: Needs, state: State, talk: Talk) -> None:
        if needs.packages:
            self._root = guest_root(needs.packages, needs.unpack, state, talk)
        if self.config.share:
            self._share = read_share(self.config.share, state)

    def stand_in(self, variant: str, block: int) -> str:
        raise AssertionError(f"{variant}, block {block}: this machine boots images")

    def boot(self, order: BootOrder) -> BootEnd:
        """Start QEMU, watch it, and read its files. Raises ShareChanged."""
        with new_disk(order.directory, self.config.disk_mb, FREE_SPACE_NEEDED), watched() as conditions:
            end = self._boot(order)
        if self._share:
            self._share.require_unchanged()
        return replace(end, conditions=conditions)

    def _boot(self, order: BootOrder) -> BootEnd:
        archive = order.directory / "initramfs.cpio"
        order = self._packed(order, archive)
        console, stream = order.directory / "console.log", order.directory / "stream.jsonl"
        log_path = order.directory / "qemu.log"
        command = self.command(order, archive, serial=f"file:{console}", stream=stream)
        pmu = self.pmu if order.is_counted else None
        command += pmu.words(order) if pmu else order.plugin
        start = time.monotonic()
        memory = self.config.memory_mb * MIB if order.memory else 0
        watch = Watch(console, stream, self.config.limits.for_programs(order.job.programs))
        stopped = None
        with log_path.open("wb") as log, spawn(command, cwd=order.directory, stdout=log) as qemu:
            watch.bound(qemu.pid, (self.config.disk_mb or 0) * MIB + memory)
            while qemu.poll() is None and stopped is None and not order.cancelled.is_set():
                time.sleep(POLL_SECONDS)
                stopped = watch.broken_limit()
        seconds = time.monotonic() - start
        stopped = watch.cut() or stopped
        archive.unlink()
        if order.cancelled.is_set():
            left = Exit(lost="interrupted")
        else:
            left = Exit(
                stopped=stopped, lost=None if stopped else _why_lost(qemu.returncode, log_path, order.directory)
            )
        report = read_stream(stream, expected_records(order.job))
        status, reason = verdict_on_boot(left, report, console)
        advice = ""
        if PORT_MISSING in reason:
            reason += f": {port_needs(self.config.platform)}"
            others = "; ".join(port_needs(platform) for platform in NEEDS if platform != self.config.platform)
            advice = f"build a kernel with these options, or choose another platform: {others}"
        counters = order.directory / COUNTERS if status == "ok" and order.job.counters else None
        end = BootEnd(
            status, reason, seconds, watch.ready, command, console, stream, report, advice=advice, counters=counters
        )
        return pmu.applied(end, order.directory / RECORD) if pmu else end

    def _packed(self, order: BootOrder, archive: Path) -> BootOrder:
        """Write the initramfs, and return the order with the parameter for loading modules first, if there are any."""
        modules = loaded(order.modules, self.config, order.job) if order.modules else {}
        root = self._root.squashfs if self._root else None
        archive.write_bytes(initramfs(self._tools, order.job, root, modules))
        return replace(order, cmdline=(*order.cmdline, START_WORD)) if modules else order

    def converse(self, order: BootOrder) -> int:
        """Boot with the console on this terminal, for a person, and return QEMU's exit status."""
        archive = order.directory / "initramfs.cpio"
        order = self._packed(order, archive)
        command = self.command(order, archive, serial="chardev:terminal", stream=order.directory / "stream.jsonl")
        with new_disk(order.directory, self.config.disk_mb, FREE_SPACE_NEEDED):
            return subprocess.run(
                [*command, *TERMINAL], cwd=order.directory, env=passed_environment(), check=False
            ).returncode

    def command(self, order: BootOrder, archive: Path, *, serial: str, stream: Path) -> tuple[str, ...]:
        """Return QEMU's command line for a boot."""
        options = qemu_options(self._guest, order, archive, sandbox=self._sandbox, serial=serial, stream=stream)
        return (QEMU, *options)

    @cached_property
    def _sandbox(self) -> tuple[str, ...]:
        """Return the options of QEMU's sandbox, if it supports it. They are not facts: no sample depends on them."""
        return SANDBOX if why_no_sandbox(QEMU) is None else ()

    @cached_property
    def _guest(self) -> Guest:
        words = self._family_cpu.cmdline if self._family_cpu else ()
        return Guest(self.config, self.accel, self.cpu_model, words)


def cpu_of(settings: MachineSettings) -> str | None:
    """Return QEMU's CPU model for these settings; None if they aren't of QEMU."""
    return QemuMachine(settings).cpu_model if isinstance(settings, QemuConfig) else None


def _why_lost(status: int, log_path: Path, directory: Path) -> str | None:
    if shutil.disk_usage(directory).free < FREE_SPACE_NEEDED:
        return f"the disk that holds {directory.parent} is full"
    if status == 0:
        return None
    words = log_path.read_text(encoding="utf-8", errors="replace").strip()[-300:]
    if status < 0:
        return f"QEMU was killed by signal {-status}"
    return f"QEMU ended with status {status}: {words or 'without a message'}"
