"""What a kernel must have built in for each of QEMU's platforms: one table, and what of it a configuration lacks.

Here is only what nothing works without. Without devtmpfs, tmpfs or proc the agent starts all the same, and what can't
run then says so itself. A module is as good as nothing, but for built kernels whose modules the initramfs holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kdyno.base.errors import UserError
from kdyno.kernel.built_kernels.modules import WANTED

Platform = Literal["microvm", "q35"]
Output = Literal["stream", "console"]
"""How a guest's output reaches the host: that of tests and commands by the agent stream, a shell's by the console."""


class KernelLacks(UserError):
    message = "{kernel} can't run {what} on {platform}: options are missing in {config}\n{lists}"
    hint = "{way_out}"


class CpusMissing(UserError):
    message = "the machine has {cpus} CPUs, and {what} would use {usable}: {why}; the others wouldn't be there"
    hint = "give the machine {usable} (cpus in [machine], --cpus), or build the kernel with {symbols}"


class KernelNotStartable(UserError):
    message = "{what} can't start on {platform}; {where} lacks\n{list}"
    hint = "{way_out}"


TAKE_ANOTHER = (
    "all variants of a run boot on one machine: ask for these in `kconfig` of variants that kdyno builds, or name "
    "another platform in [machine]"
)
NO_MODULE = (
    "its modules must lie in lib/modules/RELEASE beside the directory of the kernel: install them, or name the "
    "package (debian:PACKAGE)"
)


@dataclass(frozen=True)
class Need:
    """A symbol of Kconfig (without CONFIG_) that must be y."""

    symbol: str
    why: str
    output: Output | None = None
    """What it is needed for; None: for both."""


ANYWHERE = (
    Need("X86_64", "the agent and busybox are 64-bit programs"),
    Need("BINFMT_ELF", "the agent and busybox are ELF programs"),
    Need("BLK_DEV_INITRD", "they come in an initramfs"),
    Need("TTY", "a shell needs a terminal", "console"),
    Need("SERIAL_8250", "the terminal is a serial port", "console"),
    Need("SERIAL_8250_CONSOLE", "the kernel's console is that port", "console"),
    Need("SYSFS", "the agent looks for its port in /sys/class/virtio-ports", "stream"),
    Need("VIRTIO_CONSOLE", "the agent's port is one of virtio-serial", "stream"),
)
NEEDS: Mapping[Platform, tuple[Need, ...]] = {
    "microvm": (
        *ANYWHERE,
        Need("VIRTIO_MMIO", "devices are on virtio-mmio", "stream"),
        # Without ACPI QEMU appends virtio_mmio.device=... to the command line; see boot/qemu.py.
        Need("VIRTIO_MMIO_CMDLINE_DEVICES", "the kernel command line says where they are", "stream"),
    ),
    "q35": (
        *ANYWHERE,
        Need("PCI", "devices are on PCI", "stream"),
        Need("VIRTIO_PCI", "virtio is on PCI too", "stream"),
    ),
}
"""The symbols have had these names since before 4.19."""

SCRIPT = Need("BINFMT_SCRIPT", "a script loads the modules")
STATES = {"m": "module", "n": "not set"}


@dataclass(frozen=True)
class Lack:
    """A need that a kernel doesn't meet."""

    need: Need
    state: str
    """`module` or `not set`."""

    @property
    def text(self) -> str:
        return f"CONFIG_{self.need.symbol}=y (here: {self.state}): {self.need.why}"


def lacks(
    config: Mapping[str, str],
    platform: Platform,
    output: Output,
    more: tuple[Need, ...] = (),
    modules: Sequence[str] = (),
) -> list[Lack]:
    """What the platform, and `more`, needs for this output, and neither configuration nor `modules` have. Pure."""
    needs = (need for need in (*NEEDS[platform], *more) if need.output in (None, output))
    values = {need: config.get(need.symbol, "n") for need in needs}
    return [
        Lack(need, STATES.get(value, value))
        for need, value in values.items()
        if value != "y" and not (value == "m" and WANTED.get(need.symbol) in modules)
    ]


def require_startable(
    config: Mapping[str, str],
    modules: Sequence[str],
    platform: Platform,
    more: tuple[Need, ...],
    what: str,
    where: str,
    is_whole: bool,
) -> None:
    """Raise KernelNotStartable if a kernel with these modules at hand lacks what the platform needs.

    What isn't in a configuration that `is_whole` is off; in a list of wishes it may have been left to Kconfig, but for
    the devices, which Kconfig turns on for nobody who didn't ask. Pure.
    """
    missing = lacks(config, platform, "stream", more, modules)
    if not is_whole:
        missing = [lack for lack in missing if lack.need not in ANYWHERE]
    if modules and config.get("BINFMT_SCRIPT") != "y":
        missing.append(Lack(SCRIPT, STATES.get(config.get("BINFMT_SCRIPT", "n"), "n")))
    if missing:
        way_out = NO_MODULE if any(lack.state == STATES["m"] for lack in missing) else TAKE_ANOTHER
        listed = "\n".join(f"  {lack.text}" for lack in missing)
        raise KernelNotStartable(what=what, where=where, platform=platform, list=listed, way_out=way_out)


def require_cpus(config: Mapping[str, str], cpus: int, what: str) -> None:
    """Raise CpusMissing if a kernel with this configuration, as far as it is known, can't use so many CPUs. Pure."""
    if cpus == 1:
        return
    most = config.get("NR_CPUS", "")
    symbols = f"CONFIG_SMP=y and CONFIG_NR_CPUS={cpus} or more"
    if config.get("SMP") == "n":
        raise CpusMissing(cpus=cpus, what=what, usable=1, why="it has no SMP", symbols=symbols)
    if most.isdecimal() and 1 < int(most) < cpus:  # 1 is a leftover of a kernel without SMP
        raise CpusMissing(cpus=cpus, what=what, usable=int(most), why=f"CONFIG_NR_CPUS={most}", symbols=symbols)


def port_needs(platform: Platform) -> str:
    """What an agent that runs, but has no port, may be missing."""
    symbols = ", ".join(f"CONFIG_{need.symbol}=y" for need in NEEDS[platform] if need.output == "stream")
    return f"{platform} needs {symbols}"


def require_options(
    kernel: Path, platform: Platform, output: Output, cpus: int = 1, more: tuple[Need, ...] = ()
) -> None:
    """Raise KernelLacks if the kernel's configuration, where it is known, can't get this output out of a guest, and
    CpusMissing if it can't use so many CPUs. `more` is what this guest needs beside.
    """
    from kdyno.kernel.config_of import config_of
    from kdyno.kernel.kconfig_check import read_config

    path = config_of(kernel)
    if path is None:
        return
    config = read_config(path.read_text(encoding="utf-8", errors="replace"))
    require_cpus(config, cpus, str(kernel))
    lacking = {name: lacks(config, name, output, more) for name in NEEDS}
    if not lacking[platform]:
        return
    suitable = [name for name, missing in lacking.items() if not missing]
    if suitable:
        way_out = f"--platform {suitable[0]} will do: this kernel has all that it needs"
    else:
        way_out = "no platform will do: build a kernel with all that one of them needs (=y: the guest has no modules)"
        if output == "stream" and not lacks(config, platform, "console", more):
            way_out += "; a shell needs less: `kdyno boot` without a command works"
    lists = [
        "\n  ".join([f"{name} needs", *(lack.text for lack in missing)]) for name, missing in lacking.items() if missing
    ]
    what = "a command" if output == "stream" else "a shell"
    raise KernelLacks(kernel=kernel, what=what, platform=platform, config=path, lists="\n".join(lists), way_out=way_out)
