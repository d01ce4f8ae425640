"""One kernel, one boot, a command or a shell in it: what a kernel developer wants on day one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Event, Thread
from typing import BinaryIO

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.files import copy_whole
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootOrder, Description, MachineBackend, MachineSettings
from kdyno.boot.console import read_console
from kdyno.boot.platforms import Output
from kdyno.boot.registry import open_machine
from kdyno.kernel.image import Image, ImageRecord
from kdyno.kernel.images import RECORD, ImageCorrupt, image_in
from kdyno.measure.guest.follow import follow_output, is_interactive
from kdyno.measure.guest.job import Program
from kdyno.runs.subject import NamedDirectory, NamedFile, find_subject

CONSOLE_LINES_SHOWN = 40


class NoKernelInDirectory(UserError):
    message = "{directory} has no bzImage, neither at its top nor in arch/x86/boot"
    hint = "name the directory of a kernel build that has ended, a bzImage, or the key of an image"


class NotAKernel(UserError):
    message = "{path} is not an x86 bzImage"
    hint = "a kernel build leaves it as arch/x86/boot/bzImage; a vmlinux won't do"


class NotOfItsRecord(UserError):
    message = "{kernel} lies beside an {record} that it does not fit: {why}"
    hint = "copy the whole image again, or boot the kernel from a directory without {record}"


class NoPlaceForConsole(UserError):
    message = "can't keep the console in {path}: its directory does not exist"
    hint = "make the directory, or name another file"


class NoTerminal(UserError):
    message = "a shell in the guest needs a terminal"
    hint = "give a command: kdyno boot KERNEL -- COMMAND ..."


class BootFailed(InfrastructureError):
    message = "the boot {ended}: {reason}"
    hint = "--console FILE keeps the whole console; --append loglevel=7 makes the kernel say more"


class BootNeedsMore(BootFailed):
    hint = "{advice}"


def find_kernel(named: str, state: State) -> Path:
    """The bzImage that a user means. Raises what find_subject raises, NoKernelInDirectory and NotOfItsRecord."""
    subject = find_subject(named, ("image", "kernel", "directory"), state)
    if isinstance(subject, Image):
        return subject.bzimage
    assert isinstance(subject, NamedFile | NamedDirectory)
    path = subject.path
    for candidate in (path, path / "arch" / "x86" / "boot" / "bzImage", path / "bzImage"):
        if candidate.is_file():
            _record_beside(candidate, state)
            return _checked(candidate.resolve())
    raise NoKernelInDirectory(directory=path)


def _record_beside(kernel: Path, state: State) -> ImageRecord | None:
    """The record of the image that a kernel is of, if it lies beside one. Raises ImageCorrupt and NotOfItsRecord."""
    if not os.path.lexists(kernel.with_name(RECORD)):
        return None
    place = kernel.parent
    try:
        return image_in(place, state).record
    except ImageCorrupt as error:
        if place.resolve().parent == state.images.resolve():
            raise
        raise NotOfItsRecord(kernel=kernel, record=RECORD, why=error.facts["why"]) from error


def _checked(path: Path) -> Path:
    """The boot protocol's magic: Documentation/arch/x86/boot.rst of the kernel."""
    with path.open("rb") as file:
        file.seek(0x202)
        if file.read(4) != b"HdrS":
            raise NotAKernel(path=path)
    return path


def boot_command(
    settings: MachineSettings,
    kernel: Path,
    command: tuple[str, ...],
    *,
    words: tuple[str, ...],
    seed: int,
    console: Path | None,
    state: State,
    talk: Talk,
    stdout: BinaryIO | None = None,
    stderr: BinaryIO | None = None,
) -> int:
    """Run a command in a guest, and return its exit status. Raises BootFailed.

    What it writes is copied as it comes to `stdout` and `stderr`, else to this process's own.
    """
    if console and not console.parent.is_dir():
        raise NoPlaceForConsole(path=console)
    machine, about = _opened(settings, kernel, "stream", state, talk)
    with state.scratch("one") as scratch:
        job = about.job(1, programs=(Program(name="command", command=command),))
        order = BootOrder(kernel.name, kernel, words, job, seed, scratch)
        ended = Event()
        outputs = (stdout or sys.stdout.buffer, stderr or sys.stderr.buffer)
        stream = order.directory / "stream.jsonl"
        follower = Thread(target=follow_output, args=(stream, ended, *outputs))
        follower.start()
        try:
            end = machine.boot(order)
        finally:
            ended.set()
            follower.join()
        if console:
            copy_whole(end.console, console)
        if end.status == "ok" and (step := end.report.steps[0]).status is not None:
            return step.status
        shown = "".join(c for c in read_console(end.console) if c.isprintable() or c == "\n")
        for line in shown.splitlines()[-CONSOLE_LINES_SHOWN:]:
            talk.warn(f"console: {line}")
    ended_how = "was lost" if end.status == "lost" else "failed"
    if end.advice:
        raise BootNeedsMore(ended=ended_how, reason=end.reason, advice=end.advice)
    raise BootFailed(ended=ended_how, reason=end.reason or "the command left no exit status")


def boot_shell(
    settings: MachineSettings, kernel: Path, *, words: tuple[str, ...], seed: int, state: State, talk: Talk
) -> int:
    """Give the user a shell in a guest, on this terminal."""
    if not is_interactive():
        raise NoTerminal()
    machine, about = _opened(settings, kernel, "console", state, talk)
    talk.say("`exit` ends the guest; Ctrl-A X ends QEMU")
    with state.scratch("one") as scratch:
        job = about.job(1, interactive=True)
        return machine.converse(BootOrder(kernel.name, kernel, words, job, seed, scratch))


def _opened(
    settings: MachineSettings, kernel: Path, output: Output, state: State, talk: Talk
) -> tuple[MachineBackend, Description]:
    """The machine, if the kernel is known to be fit for it, as far as its configuration or its record tells.

    A kernel that lies beside a record must be the one that the record is of.
    """
    machine = open_machine(settings)
    machine.require_options(kernel, output)
    if record := _record_beside(kernel, state):
        machine.require_cpu(record.needs, f"image {record.key[:12]}")
    about = machine.describe()
    for notice in about.notices:
        talk.warn(f"note: {notice}")
    return machine, about
