"""The options that a kernel must have built in for each of QEMU's platforms, and checks of configurations.

The table has only indispensable options. Without devtmpfs, tmpfs or proc the agent starts anyway, and programs that
cannot run report it. A module doesn't count, except for built kernels whose modules are in the initramfs.
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
"""The path of a guest's output to the host: the agent stream for tests and commands, the console for a shell."""


class KernelLacks(UserError):
    message = "{kernel} cannot run {what} on {platform}: options are missing in {config}\n{lists}"
    hint = "{way_out}"


class CpusMissing(UserError):
    message = "the machine has {cpus} CPUs, but {what} can use only {usable}: {why}"
    hint = "set the CPUs of the machine to {usable} (cpus in [machine], --cpus), or build the kernel with {symbols}"


class KernelNotStartable(UserError):
    message = "{what} cannot start on {platform}; {where} lacks\n{list}"
    hint = "{way_out}"


TAKE_ANOTHER = (
    "set these options in `kconfig` of variants that kdyno builds, or name another platform in [machine]: "
    "all variants of a run boot on one machine"
)
NO_MODULE = (
    "install its modules in lib/modules/RELEASE next to the directory of the kernel, or name the "
    "package (debian:PACKAGE)"
)


@dataclass(frozen=True)
class Need:
    """A symbol of Kconfig (without CONFIG_) that must be y, and the reason."""

    symbol: str
    why: str
    output: Output | None = None
    """The output that requires it; None: both."""


ANYWHERE = (
    Need("X86_64", "the agent and busybox are 64-bit programs"),
    Need("BINFMT_ELF", "the agent and busybox are ELF programs"),
    Need("BLK_DEV_INITRD", "the agent and busybox are in an initramfs"),
    Need("TTY", "a shell requires a terminal", "console"),
    Need("SERIAL_8250", "the terminal is a serial port", "console"),
    Need("SERIAL_8250_CONSOLE", "the kernel's console is that port", "console"),
    Need("SYSFS", "the agent looks for its port in /sys/class/virtio-ports", "stream"),
    Need("VIRTIO_CONSOLE", "the agent's port is on virtio-serial", "stream"),
)
NEEDS: Mapping[Platform, tuple[Need, ...]] = {
    "microvm": (
        *ANYWHERE,
        Need("VIRTIO_MMIO", "devices are on virtio-mmio", "stream"),
        # Without ACPI QEMU appends virtio_mmio.device=... to the command line; see boot/qemu.py.
        Need("VIRTIO_MMIO_CMDLINE_DEVICES", "the kernel command line has their addresses", "stream"),
    ),
    "q35": (
        *ANYWHERE,
        Need("PCI", "devices are on PCI", "stream"),
        Need("VIRTIO_PCI", "virtio is on PCI, too", "stream"),
    ),
}
"""The needs by platform. The symbols have had these names since before 4.19."""

MENUS = (Need("VIRTIO_MENU", "drivers of virtio are in this menu"),)
"""What must be on so that the needs can be."""
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
    """Return the needs of the platform, and `more`, for this output that configuration and `modules` lack. Pure."""
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
    """Raise KernelNotStartable if a kernel with these available modules lacks options that the platform needs.

    Options that are missing in a configuration that `is_whole` are off. Otherwise Kconfig may enable them, except
    those of devices, which Kconfig enables only on request. Pure.
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
    """Raise CpusMissing if a kernel with this configuration, as far as it is known, cannot use so many CPUs. Pure."""
    if cpus == 1:
        return
    most = config.get("NR_CPUS", "")
    symbols = f"CONFIG_SMP=y and CONFIG_NR_CPUS={cpus} or more"
    if config.get("SMP") == "n":
        raise CpusMissing(cpus=cpus, what=what, usable=1, why="it has no SMP", symbols=symbols)
    if most.isdecimal() and 1 < int(most) < cpus:  # 1 is a leftover of a kernel without SMP
        raise CpusMissing(cpus=cpus, what=what, usable=int(most), why=f"CONFIG_NR_CPUS={most}", symbols=symbols)


def port_needs(platform: Platform) -> str:
    """Return the options that may be missing if an agent runs, but has no port."""
    symbols = ", ".join(f"CONFIG_{need.symbol}=y" for need in NEEDS[platform] if need.output == "stream")
    return f"{platform} requires {symbols}"


def require_options(
    kernel: Path, platform: Platform, output: Output, cpus: int = 1, more: tuple[Need, ...] = ()
) -> None:
    """Raise KernelLacks if the kernel, by its configuration if known, cannot send this output out of a guest, and
    CpusMissing if it cannot use so many CPUs. `more` are additional needs of this guest.
    """
    from kdyno.kernel.files_of import config_of
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
        way_out = f"use --platform {suitable[0]}: this kernel has all options for it"
    else:
        way_out = "build a kernel with all options of one platform (=y: the guest has no modules)"
        if output == "stream" and not lacks(config, platform, "console", more):
            way_out += "; a shell requires less: `kdyno boot` without a command works"
    lists = [
        "\n  ".join([f"{name} requires", *(lack.text for lack in missing)])
        for name, missing in lacking.items()
        if missing
    ]
    what = "a command" if output == "stream" else "a shell"
    raise KernelLacks(kernel=kernel, what=what, platform=platform, config=path, lists="\n".join(lists), way_out=way_out)
