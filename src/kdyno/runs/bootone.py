"""One boot of one kernel, with a command or a shell in the guest."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Event
from typing import BinaryIO

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.files import copy_whole
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.base.threads import ThreadCall
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
    hint = "name the directory of a finished kernel build, a bzImage, or the key of an image"


class NotAKernel(UserError):
    message = "{path} is not an x86 bzImage"
    hint = "name the arch/x86/boot/bzImage of a kernel build; a vmlinux cannot be booted"


class NotOfItsRecord(UserError):
    message = "{kernel} is in the directory of an {record} that it does not match: {why}"
    hint = "copy the whole image again, or boot the kernel from a directory without {record}"


class NoPlaceForConsole(UserError):
    message = "the console cannot be written to {path}: the directory does not exist"
    hint = "make the directory, or name another file"


class NoTerminal(UserError):
    message = "a shell in the guest needs a terminal"
    hint = "give a command: kdyno boot KERNEL -- COMMAND ..."


class BootFailed(InfrastructureError):
    message = "the boot {ended}: {reason}"
    hint = "pass --console FILE to keep the whole console, and --append loglevel=7 for more messages of the kernel"


class BootNeedsMore(BootFailed):
    hint = "{advice}"


def find_kernel(name: str, state: State) -> Path:
    """Return the path of the bzImage that the user named.

    Raises what find_subject raises, NoKernelInDirectory, NotAKernel and NotOfItsRecord.
    """
    subject = find_subject(name, ("image", "kernel", "directory"), state)
    if isinstance(subject, Image):
        return subject.program
    assert isinstance(subject, NamedFile | NamedDirectory)
    path = subject.path
    for candidate in (path, path / "arch" / "x86" / "boot" / "bzImage", path / "bzImage"):
        if candidate.is_file():
            _record_beside(candidate, state)
            return _require_bzimage(candidate.resolve())
    raise NoKernelInDirectory(directory=path)


def _record_beside(kernel: Path, state: State) -> ImageRecord | None:
    """Return the image record in the kernel's directory; None without one. Raises ImageCorrupt and NotOfItsRecord."""
    if not os.path.lexists(kernel.with_name(RECORD)):
        return None
    place = kernel.parent
    try:
        return image_in(place, state).record
    except ImageCorrupt as error:
        if place.resolve().parent == state.images.resolve():
            raise
        raise NotOfItsRecord(kernel=kernel, record=RECORD, why=error.facts["why"]) from error


def _require_bzimage(path: Path) -> Path:
    """Return the path. Raises NotAKernel unless the file has the magic number of the boot protocol.

    The protocol is in Documentation/arch/x86/boot.rst of the kernel.
    """
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

    The output is copied as it arrives to `stdout` and `stderr`; None: to those of this process.
    """
    if console and not console.parent.is_dir():
        raise NoPlaceForConsole(path=console)
    machine, about = _open_machine(settings, kernel, "stream", state, talk)
    with state.scratch("one") as scratch:
        job = about.job(1, programs=(Program(name="command", command=command),))
        order = BootOrder(kernel.name, kernel, words, job, seed, scratch)
        has_ended = Event()
        outputs = (stdout or sys.stdout.buffer, stderr or sys.stderr.buffer)
        stream = order.directory / "stream.jsonl"
        follower = ThreadCall(follow_output, stream, has_ended, *outputs)
        try:
            end = machine.boot(order)
        finally:
            has_ended.set()
            follower.wait()
        follower.result()
        if console:
            copy_whole(end.console, console)
        if end.status == "ok" and (step := end.report.steps[0]).status is not None:
            return step.status
        console_text = "".join(c for c in read_console(end.console) if c.isprintable() or c == "\n")
        for line in console_text.splitlines()[-CONSOLE_LINES_SHOWN:]:
            talk.warn(f"console: {line}")
    ended_how = "was lost" if end.status == "lost" else "failed"
    if end.advice:
        raise BootNeedsMore(ended=ended_how, reason=end.reason, advice=end.advice)
    raise BootFailed(ended=ended_how, reason=end.reason or "the command left no exit status")


def boot_shell(
    settings: MachineSettings, kernel: Path, *, words: tuple[str, ...], seed: int, state: State, talk: Talk
) -> int:
    """Give the user a shell in a guest, on this terminal, and return QEMU's exit status. Raises NoTerminal."""
    if not is_interactive():
        raise NoTerminal()
    machine, about = _open_machine(settings, kernel, "console", state, talk)
    talk.say("`exit` ends the guest; Ctrl-A X ends QEMU")
    with state.scratch("one") as scratch:
        job = about.job(1, interactive=True)
        return machine.converse(BootOrder(kernel.name, kernel, words, job, seed, scratch))


def _open_machine(
    settings: MachineSettings, kernel: Path, output: Output, state: State, talk: Talk
) -> tuple[MachineBackend, Description]:
    """Open the machine, and check that it can start the kernel, as far as the configuration or the record shows it.

    A kernel in the directory of a record must be the kernel of that record.
    """
    machine = open_machine(settings)
    machine.require_options(kernel, output)
    if record := _record_beside(kernel, state):
        machine.require_cpu(record.needs, f"image {record.key[:12]}")
    about = machine.describe()
    for notice in about.notices:
        talk.warn(f"note: {notice}")
    return machine, about
