"""The options of QEMU for a boot."""

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
with all tests. Without them it is the PIT that ticks, just as often."""
TRANSPORTS: dict[Platform, str] = {"microvm": "virtio-mmio", "q35": "virtio-pci"}
"""What virtio devices are on, as QEMU calls it."""
PORT, COUNTERS_PORT = "org.kdyno.agent", "org.kdyno.counters"


@dataclass(frozen=True)
class Guest:
    """What decides QEMU's command line, beside what is booted."""

    config: QemuConfig
    accel: Literal["kvm", "tcg"]
    """What is really used."""
    cpu_model: str
    words: tuple[str, ...]
    """For the kernel: what makes up for what QEMU can't show of its CPU family."""

    @property
    def icount(self) -> bool:
        return LANES[self.config.lane].is_icount

    @property
    def cmdline(self) -> tuple[str, ...]:
        """Words for the kernel that every boot gets."""
        # reboot=t: a triple fault is the one way out of a microvm; panic=-1: at once.
        words = ("console=ttyS0", "reboot=t", "panic=-1", "quiet")
        if not self.icount:
            return words
        return (*words, "nokaslr", *(QUICK_TIMER if self.config.platform == "microvm" else ()), *self.words)


def qemu_options(
    guest: Guest, order: BootOrder, archive: Path, *, sandbox: Sequence[str], serial: str, stream: Path
) -> tuple[str, ...]:
    """Each group of words has one purpose."""
    words = ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", *sandbox]
    words += ["-accel", guest.accel, "-cpu", guest.cpu_model, "-smp", str(guest.config.cpus)]
    words += ["-m", str(guest.config.memory_mb), "-seed", str(order.seed)]
    if guest.icount:
        words += ["-icount", f"shift={guest.config.icount_shift},sleep=off,align=off"]
        words += ["-rtc", "base=2024-01-01T00:00:00,clock=vm"]
        # QEMU 10 serves virtio queues in its main thread under TCG, too, at moments that differ from boot to boot;
        # 7.2 does so under KVM alone.
        words += ["-global", f"{TRANSPORTS[guest.config.platform]}.ioeventfd=off"]
    if guest.config.platform == "microvm":
        # Without ACPI QEMU tells the kernel of virtio-mmio devices by its command line: no ACPI in the kernel.
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
    """What gives a guest a fine clock under TCG, where RDTSC reads the host's counter.

    The kernel would measure the counter's speed against the emulated PIT, fail on a busy host, and be left with a
    clock of jiffies.
    """
    if guest.icount or guest.accel == "kvm":
        return ()
    return ("tsc=reliable", f"tsc_early_khz={tsc_khz()}")


def _value(path: Path) -> str:
    """A path inside one of QEMU's options, where a comma would begin the next (in `-serial file:` it doesn't)."""
    return str(path).replace(",", ",,")
