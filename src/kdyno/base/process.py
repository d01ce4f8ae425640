"""Running other programs: never through a shell, never outliving kdyno, always on record.

A child gets its own process group, so that Ctrl-C reaches kdyno alone, which then ends the whole group. Programs that
run for long or change files have a warden, whose group they join: it waits for kdyno's end of a pipe to close, and then
kills the group. So `kill -9` of kdyno leaves neither a make with its compilers nor a QEMU behind. A short query has a
time limit instead of a warden, because a warden would take longer than most queries.
"""

from __future__ import annotations

import logging
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from typing import IO

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.surroundings import passed_environment

log = logging.getLogger("kdyno.base.process")

WARDEN = "import os, signal, sys; sys.stdin.buffer.read(); os.killpg(0, signal.SIGKILL)"
QUERY_SECONDS = 300.0
"""Seconds. A query that takes longer hangs: the slowest known, `git ls-files` on a cold disk, takes a minute."""
MOST_OUTPUT = 128 << 20
"""The most bytes that are taken from a program's output, unless the caller allows more."""
PIECE = 1 << 16
LONGEST_LINE = 1 << 20
"""The most bytes of a line; the rest is another line."""
MESSAGE_SHOWN = 2000
"""The last characters of a failed program's output that are shown."""


class ToolMissing(InfrastructureError):
    message = "{tool} is not installed"
    hint = "run `kdyno doctor` to see how to install it"


class ToolFailed(InfrastructureError):
    message = "{command} failed with exit status {status}: {output}"
    hint = "run it by hand to see more"


class ToolHangs(InfrastructureError):
    message = "{command} did not end within {seconds:g} s"
    hint = "run it by hand to see what it waits for"


class TooMuchOutput(UserError):
    message = "{command} printed more than {most:,} bytes"
    hint = "the file that it reads is damaged, or made to exhaust memory: run it by hand to see"


def failure(command: Sequence[str | Path], status: int, output: str) -> ToolFailed:
    """Return the error for a program that ended with this status after this output."""
    return ToolFailed(command=quote(command), status=status, output=output.strip()[-MESSAGE_SHOWN:] or "nothing")


def quote(command: Sequence[str | Path]) -> str:
    """Return the command as one line for a shell; it is shown to people and recorded, never run."""
    return shlex.join(str(word) for word in command)


GRACE_SECONDS = 10.0
"""The time that a program has to end by itself after its group was killed."""


@contextmanager
def spawn(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] | None = subprocess.DEVNULL,
    stdout: int | IO[bytes] | None = subprocess.DEVNULL,
    stderr: int | IO[bytes] | None = subprocess.STDOUT,
    umask: int = -1,
    guarded: bool = True,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program in a process group of its own; whatever happens in the body, the group is gone at the end.

    `env` is added to the environment that is passed on (surroundings.py), and `umask`, if given, replaces kdyno's own.
    A `guarded` program has a warden, and dies with kdyno even if kdyno is killed. Raise ToolMissing if there is no such
    program.
    """
    log.debug("%s", quote(command))
    with _warden() if guarded else nullcontext(0) as group:
        try:
            child = subprocess.Popen(
                [str(word) for word in command],
                cwd=cwd,
                env={**passed_environment(), **(env or {})},
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                umask=umask,
                process_group=group,
            )
        except FileNotFoundError as error:
            raise ToolMissing(tool=command[0]) from error
        try:
            yield child
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group or child.pid, signal.SIGKILL)
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Wait until a program ends whose group was killed. One that has left the group may have something to do first."""
    with suppress(subprocess.TimeoutExpired):
        child.wait(GRACE_SECONDS)
    child.kill()
    child.wait()


@contextmanager
def _warden() -> Iterator[int]:
    """Start a warden, in a new group: it kills the group when this process dies, however it dies. Yield the group.

    It is isolated (-I): no module is loaded from the directory or the variables that kdyno was called with.
    """
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", WARDEN],
        cwd="/",
        env=passed_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as warden:
        try:
            yield warden.pid
        finally:
            # The whole group: an interrupt may have come just when the child had been started.
            os.killpg(warden.pid, signal.SIGKILL)


def output(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = QUERY_SECONDS,
    guarded: bool = False,
    most: int = MOST_OUTPUT,
) -> str:
    """Run a program as `attempt` does and return its standard output. Raise ToolFailed with its message if it fails."""
    done = attempt(command, cwd=cwd, env=env, timeout=timeout, guarded=guarded, most=most)
    if done.returncode != 0:
        raise failure(command, done.returncode, done.stderr or done.stdout)
    return done.stdout


def attempt(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float = QUERY_SECONDS,
    guarded: bool = False,
    most: int = MOST_OUTPUT,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return its output and its status, which the caller must check.

    Raise TooMuchOutput once it has printed more than `most` bytes, and ToolHangs after `timeout` seconds. A `guarded`
    program has a warden instead of a time limit: use that for programs that run for long, or that must not go on
    writing when kdyno is started again.
    """
    with spawn(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        guarded=guarded,
    ) as child:
        data = None if stdin is None else stdin.encode(errors="surrogateescape")
        try:
            out, err = _communicate(child, data or b"", None if guarded else timeout, most)
        except subprocess.TimeoutExpired:
            raise ToolHangs(command=quote(command), seconds=timeout) from None
        except _TooMuch:
            raise TooMuchOutput(command=quote(command), most=most) from None
    return subprocess.CompletedProcess(child.args, child.returncode, _text(out), _text(err))


class _TooMuch(Exception):
    pass


def _communicate(
    child: subprocess.Popen[bytes], data: bytes, seconds: float | None, most: int
) -> tuple[BytesIO, BytesIO]:
    """Return the result of `communicate`, with at most `most` bytes of both outputs together.

    Raise _TooMuch and subprocess.TimeoutExpired.
    """
    assert child.stdout and child.stderr
    end = None if seconds is None else time.monotonic() + seconds
    printed = {child.stdout.fileno(): BytesIO(), child.stderr.fileno(): BytesIO()}
    remaining = memoryview(data)
    with child.stdout, child.stderr, child.stdin or nullcontext(), selectors.DefaultSelector() as selector:
        for descriptor in printed:
            selector.register(descriptor, selectors.EVENT_READ)
        if child.stdin:
            os.set_blocking(child.stdin.fileno(), False)
            selector.register(child.stdin, selectors.EVENT_WRITE)
        while selector.get_map():
            ready = selector.select(None if end is None else end - time.monotonic())
            if not ready:
                raise subprocess.TimeoutExpired(child.args, seconds or 0)
            for key, _ in ready:
                if key.fileobj is child.stdin:
                    try:
                        remaining = remaining[os.write(key.fd, remaining[:PIECE]) :]
                    except BrokenPipeError:  # it has ended, or reads no more
                        remaining = remaining[:0]
                    if not remaining:
                        selector.unregister(child.stdin)
                        child.stdin.close()
                    continue
                piece = os.read(key.fd, PIECE)
                printed[key.fd].write(piece)
                if not piece:
                    selector.unregister(key.fd)
                if sum(content.tell() for content in printed.values()) > most:
                    raise _TooMuch()
    child.wait(None if end is None else max(end - time.monotonic(), 0))
    out, err = printed.values()
    return out, err


def _text(content: BytesIO) -> str:
    """Return the output, in UTF-8; the bytes are freed as the text is made."""
    with content:
        return str(content.getbuffer(), "utf-8", "replace")


def stream_lines(
    command: Sequence[str | Path],
    on_line: Callable[[str], None],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    umask: int = -1,
) -> int:
    """Run a program, pass each line of its output (stdout and stderr together) to `on_line`, and return its status."""
    with spawn(command, cwd=cwd, env=env, stdin=stdin, stdout=subprocess.PIPE, umask=umask) as child:
        assert child.stdout is not None
        while line := child.stdout.readline(LONGEST_LINE):
            on_line(line.decode(errors="replace").rstrip("\n"))
        return child.wait()
