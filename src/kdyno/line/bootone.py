"""One kernel, one boot, a command or a shell in it: what a kernel developer wants on day one."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from threading import Event, Thread

from kdyno.errors import InfrastructureError, UserError
from kdyno.instrument.follow import follow_output, is_interactive
from kdyno.instrument.job import Job
from kdyno.kernel.config_of import config_of
from kdyno.kernel.images import RECORD, read_record
from kdyno.kernel.kconfig_check import read_config
from kdyno.machine.base import BootOrder
from kdyno.machine.config import QemuConfig
from kdyno.machine.console import read_console
from kdyno.machine.platforms import NEEDS, Output, Platform, lacks, port_needs
from kdyno.machine.qemu import PORT_MISSING, QemuMachine
from kdyno.state import State
from kdyno.talk import Talk

CONSOLE_LINES_SHOWN = 40
KEY_DIGITS_NEEDED = 6


class NoSuchKernel(UserError):
    message = "{kernel} is neither a bzImage, nor a kernel build directory, nor the key of an image in {images}"
    hint = "`kdyno build EXPERIMENT` builds images and prints where they are"


class NotAKernel(UserError):
    message = "{path} is not an x86 bzImage"
    hint = "a kernel build leaves it as arch/x86/boot/bzImage; a vmlinux won't do"


class NoPlaceForConsole(UserError):
    message = "can't keep the console in {path}: its directory does not exist"
    hint = "make the directory, or name another file"


class NoTerminal(UserError):
    message = "a shell in the guest needs a terminal"
    hint = "give a command: kdyno boot KERNEL -- COMMAND ..."


class KernelLacks(UserError):
    message = "{kernel} can't run {what} on {platform}: options are missing in {config}\n{lists}"
    hint = "{way_out}"


class BootFailed(InfrastructureError):
    message = "the boot {ended}: {reason}"
    hint = "--console FILE keeps the whole console; --append loglevel=7 makes the kernel say more"


class NoPort(BootFailed):
    hint = "build a kernel with these, or take another platform: {others}"


def find_kernel(named: str, state: State) -> Path:
    """The bzImage that a user means."""
    path = Path(named)
    for candidate in (path, path / "arch" / "x86" / "boot" / "bzImage", path / "bzImage"):
        if candidate.is_file():
            return _checked(candidate.resolve())
    if len(named) >= KEY_DIGITS_NEEDED and named.isalnum():
        found = list(state.images.glob(f"{named}*/bzImage"))
        if len(found) == 1:
            return found[0]
    raise NoSuchKernel(kernel=named, images=state.images)


def _checked(path: Path) -> Path:
    """The boot protocol's magic: Documentation/arch/x86/boot.rst of the kernel."""
    with path.open("rb") as file:
        file.seek(0x202)
        if file.read(4) != b"HdrS":
            raise NotAKernel(path=path)
    return path


def boot_command(
    config: QemuConfig,
    kernel: Path,
    command: tuple[str, ...],
    *,
    words: tuple[str, ...],
    seed: int,
    console: Path | None,
    state: State,
    talk: Talk,
) -> int:
    """Run a command in a guest; its output comes as it is said. Returns its exit status; raises BootFailed."""
    if console and not console.parent.is_dir():
        raise NoPlaceForConsole(path=console)
    require_options(kernel, config.platform, "stream")
    machine = _machine(config, kernel, talk)
    with tempfile.TemporaryDirectory(prefix="one-", dir=state.boots) as scratch:
        job = Job(lane=config.lane, icount_shift=_shift(config), iterations=1, command=command)
        order = BootOrder(kernel.name, kernel, words, job, seed, Path(scratch))
        ended = Event()
        stream = order.directory / "stream.jsonl"
        follower = Thread(target=follow_output, args=(stream, ended, sys.stdout.buffer, sys.stderr.buffer))
        follower.start()
        try:
            end = machine.boot(order)
        finally:
            ended.set()
            follower.join()
        if console:
            shutil.copyfile(end.console, console)
        if end.status == "ok" and end.report.exit_status is not None:
            return end.report.exit_status
        shown = "".join(c for c in read_console(end.console) if c.isprintable() or c == "\n")
        for line in shown.splitlines()[-CONSOLE_LINES_SHOWN:]:
            talk.warn(f"console: {line}")
    ended_how = "was lost" if end.status == "lost" else "failed"
    if PORT_MISSING in end.reason:
        others = "; ".join(port_needs(platform) for platform in NEEDS if platform != config.platform)
        raise NoPort(ended=ended_how, reason=end.reason, others=others)
    raise BootFailed(ended=ended_how, reason=end.reason or "the command left no exit status")


def boot_shell(config: QemuConfig, kernel: Path, *, words: tuple[str, ...], seed: int, state: State, talk: Talk) -> int:
    """Give the user a shell in a guest, on this terminal."""
    if not is_interactive():
        raise NoTerminal()
    require_options(kernel, config.platform, "console")
    machine = _machine(config, kernel, talk)
    talk.say("`exit` ends the guest; Ctrl-A X ends QEMU")
    with tempfile.TemporaryDirectory(prefix="one-", dir=state.boots) as scratch:
        job = Job(lane=config.lane, icount_shift=_shift(config), iterations=1, interactive=True)
        return machine.converse(BootOrder(kernel.name, kernel, words, job, seed, Path(scratch)))


def require_options(kernel: Path, platform: Platform, output: Output) -> None:
    """Refuse a kernel that can't come so far by its configuration, if that is known; raises KernelLacks."""
    path = config_of(kernel)
    if path is None:
        return
    config = read_config(path.read_text(encoding="utf-8", errors="replace"))
    lacking = {name: lacks(config, name, output) for name in NEEDS}
    if not lacking[platform]:
        return
    suitable = [name for name, missing in lacking.items() if not missing]
    if suitable:
        way_out = f"--platform {suitable[0]} will do: this kernel has all that it needs"
    else:
        way_out = "no platform will do: build a kernel with all that one of them needs (=y: the guest has no modules)"
        if output == "stream" and not lacks(config, platform, "console"):
            way_out += "; a shell needs less: `kdyno boot` without a command works"
    lists = [
        "\n  ".join([f"{name} needs", *(lack.text for lack in missing)]) for name, missing in lacking.items() if missing
    ]
    what = "a command" if output == "stream" else "a shell"
    raise KernelLacks(kernel=kernel, what=what, platform=platform, config=path, lists="\n".join(lists), way_out=way_out)


def _machine(config: QemuConfig, kernel: Path, talk: Talk) -> QemuMachine:
    """The machine, if its CPU has what the kernel is known to need: only kdyno's own images have that on record."""
    machine = QemuMachine(config)
    if kernel.with_name(RECORD).is_file():
        record = read_record(kernel.parent)
        machine.require_cpu(record.needs, f"image {record.key[:12]}")
    for notice in machine.describe().notices:
        talk.warn(f"note: {notice}")
    return machine


def _shift(config: QemuConfig) -> int | None:
    return config.icount_shift if config.lane == "model" else None
