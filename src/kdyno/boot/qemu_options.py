"""Building the options of QEMU for a boot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kdyno.base.lanes import LANES
from kdyno.boot.base import BootOrder
from kdyno.boot.disk import disk_words
from kdyno.boot.platforms import Platform
from kdyno.boot.qemu_config import QemuConfig
from kdyno.measure.guest.agent import tsc_khz
from kdyno.measure.guest.counters import COUNTERS

QUICK_TIMER = ("nolapic_timer", "no_timer_check")
"""The kernel calibrates the local APIC's timer and checks the I/O APIC's in loops of PAUSE, for 250 ms of its time.
With -icount each PAUSE leaves the emulated CPU, so that these loops were a third of the host's work for a whole boot
with all tests. Without them the PIT ticks, equally often."""
NEVER_HALT = "idle=poll"
"""An idle kernel spins instead of halting. When the only CPU of a guest has halted, QEMU's main thread sets the guest's
clock to the next timer, with -icount sleep=off. If it looks after the HLT but before the CPU's thread has accounted its
last instructions (rr_cpu_thread_fn), these come on top, and every later tick falls elsewhere. On a busy host 1 boot in
13 had other samples because of that: docs/decisions/0075."""
TRANSPORTS: dict[Platform, str] = {"microvm": "virtio-mmio", "q35": "virtio-pci"}
"""QEMU's name of the bus of virtio devices, by platform."""
PORT, COUNTERS_PORT = "org.kdyno.agent", "org.kdyno.counters"


@dataclass(frozen=True)
class Guest:
    """The settings of QEMU's command line, besides the order."""

    config: QemuConfig
    accel: Literal["kvm", "tcg"]
    """The accelerator in use."""
    cpu_model: str
    words: tuple[str, ...]
    """Kernel parameters for features of the CPU family that QEMU can't show."""

    @property
    def icount(self) -> bool:
        return LANES[self.config.lane].is_icount

    @property
    def cmdline(self) -> tuple[str, ...]:
        """Return the kernel parameters of every boot."""
        # reboot=t: a triple fault is the one way out of a microvm; panic=-1: at once.
        words = ("console=ttyS0", "reboot=t", "panic=-1", "quiet")
        if not self.icount:
            return words
        return (*words, "nokaslr", NEVER_HALT, *(QUICK_TIMER if self.config.platform == "microvm" else ()), *self.words)


def qemu_options(
    guest: Guest, order: BootOrder, archive: Path, *, sandbox: Sequence[str], serial: str, stream: Path
) -> tuple[str, ...]:
    """Return the options; each group has one purpose."""
    words = ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", *sandbox]
    words += ["-accel", guest.accel, "-cpu", guest.cpu_model, "-smp", str(guest.config.cpus)]
    words += ["-m", str(guest.config.memory_mb), "-seed", str(order.seed)]
    if order.memory:
        backend = f"memory-backend-file,id=memory,size={guest.config.memory_mb}M,share=on"
        words += ["-object", f"{backend},mem-path={_value(order.memory)}", "-M", "memory-backend=memory"]
    if guest.icount:
        words += ["-icount", f"shift={guest.config.icount_shift},sleep=off,align=off"]
        words += ["-rtc", "base=2024-01-01T00:00:00,clock=vm"]
        # QEMU 10 serves virtio queues in its main thread under TCG, too, at times that differ between boots;
        # 7.2 does so only under KVM.
        words += ["-global", f"{TRANSPORTS[guest.config.platform]}.ioeventfd=off"]
    if guest.config.platform == "microvm":
        # Without ACPI QEMU adds virtio-mmio devices to the kernel's command line: the kernel needs no ACPI.
        words += ["-M", "microvm,acpi=off,x-option-roms=off,isa-serial=on,rtc=on"]
        bus = "virtio-serial-device"
    else:
        words += ["-M", "q35"]
        bus = "virtio-serial-pci"
    if guest.config.share:
        suffix = "device" if guest.config.platform == "microvm" else "pci"
        words += ["-fsdev", f"local,id=host,path={_value(guest.config.share)},security_model=none,readonly=on"]
        words += ["-device", f"virtio-9p-{suffix},fsdev=host,mount_tag=host"]
    if guest.config.disk_mb is not None:
        words += disk_words(order.directory, guest.config.platform)
    words += ["-kernel", str(order.kernel), "-initrd", str(archive)]
    words += ["-append", " ".join((*guest.cmdline, *_clock(guest), *order.cmdline))]
    words += ["-serial", serial, "-device", bus, "-device", f"virtserialport,chardev=agent,name={PORT}"]
    words += ["-chardev", f"file,id=agent,path={_value(stream)}"]
    if order.job.counters:
        words += ["-device", f"virtserialport,chardev=counters,name={COUNTERS_PORT}"]
        words += ["-chardev", f"file,id=counters,path={_value(order.directory / COUNTERS)}"]
    return tuple(words)


def _clock(guest: Guest) -> tuple[str, ...]:
    """Return the kernel parameters for a precise clock under TCG, where RDTSC reads the host's counter.

    Without them the kernel measures the counter's speed with the emulated PIT, fails on a busy host, and falls back to
    a clock of jiffies.
    """
    if guest.icount or guest.accel == "kvm":
        return ()
    return ("tsc=reliable", f"tsc_early_khz={tsc_khz()}")


def _value(path: Path) -> str:
    """Escape a path in one of QEMU's options, where a comma begins the next value (not in `-serial file:`)."""
    return str(path).replace(",", ",,")
