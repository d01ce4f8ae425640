"""Running other programs: never through a shell, never outliving kdyno, always on record.

A child gets its own process group, so that Ctrl-C reaches kdyno alone, which then ends the whole group. Programs that
work for long or change files have a warden, whose group they join: it waits for kdyno's end of a pipe to close, and
then kills the group. So `kill -9` of kdyno leaves neither a make with its compilers nor a QEMU behind. A short query
has no warden, which would take longer than most queries do, but a time limit.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

from kdyno.errors import InfrastructureError
from kdyno.surroundings import handed_on

log = logging.getLogger("kdyno.process")

WARDEN = "import os, signal, sys; sys.stdin.buffer.read(); os.killpg(0, signal.SIGKILL)"
QUERY_SECONDS = 300.0
"""A query that takes longer hangs: the slowest known, `git ls-files` on a cold disk, takes a minute."""
MESSAGE_SHOWN = 2000
"""Characters of what a failed program printed, its last."""


class ToolMissing(InfrastructureError):
    message = "{tool} is not installed"
    hint = "run `kdyno doctor`: it says how to install it"


class ToolFailed(InfrastructureError):
    message = "{command} failed with exit status {status}: {output}"
    hint = "run it by hand to see more"


class ToolHangs(InfrastructureError):
    message = "{command} did not end within {seconds:g} s"
    hint = "run it by hand to see what it waits for"


def failure(command: Sequence[str | Path], status: int, output: str) -> ToolFailed:
    """The error for a program that ended with this status and had printed this."""
    return ToolFailed(command=quoted(command), status=status, output=output.strip()[-MESSAGE_SHOWN:] or "nothing")


def quoted(command: Sequence[str | Path]) -> str:
    """The command as one line that a shell would take; for people and records, never for running."""
    return shlex.join(str(word) for word in command)


@contextmanager
def spawned(
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

    `env` is added to what is handed on of the environment (surroundings.py), and `umask` takes the place of kdyno's own
    if it is given. A program that is `guarded` has a warden, and dies with kdyno even if kdyno is killed. Raises
    ToolMissing if there is no such program.
    """
    log.debug("%s", quoted(command))
    with _warden() if guarded else nullcontext(0) as group:
        try:
            child = subprocess.Popen(
                [str(word) for word in command],
                cwd=cwd,
                env={**handed_on(), **(env or {})},
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
            child.wait()


@contextmanager
def _warden() -> Iterator[int]:
    """Start a warden, in a new group: it kills the group when this process dies, however it dies. Gives the group.

    It is isolated (-I): no module comes from the directory or the variables that kdyno was called with.
    """
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", WARDEN],
        cwd="/",
        env=handed_on(),
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
) -> str:
    """Run a program as `attempt` does and return its standard output; raise ToolFailed with its message if it fails."""
    done = attempt(command, cwd=cwd, env=env, timeout=timeout, guarded=guarded)
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
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return what it printed and its status, which the caller must look at.

    Raises ToolHangs after `timeout` seconds. A `guarded` program has a warden instead of a time limit: that is for
    programs that work for long, or that must not go on writing when kdyno is started again.
    """
    with spawned(
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
            out, err = child.communicate(data, timeout=None if guarded else timeout)
        except subprocess.TimeoutExpired:
            raise ToolHangs(command=quoted(command), seconds=timeout) from None
    return subprocess.CompletedProcess(
        child.args, child.returncode, out.decode(errors="replace"), err.decode(errors="replace")
    )


def stream_lines(
    command: Sequence[str | Path],
    on_line: Callable[[str], None],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    umask: int = -1,
) -> int:
    """Run a program, hand each line of its output (stdout and stderr together) to `on_line`, return its status."""
    with spawned(command, cwd=cwd, env=env, stdin=stdin, stdout=subprocess.PIPE, umask=umask) as child:
        assert child.stdout is not None
        for line in child.stdout:
            on_line(line.decode(errors="replace").rstrip("\n"))
        return child.wait()
