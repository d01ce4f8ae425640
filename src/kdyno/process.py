"""Running other programs: never through a shell, never outliving kdyno, always on record.

A child gets its own session, so that Ctrl-C reaches kdyno alone, which then ends the child's whole group; and it asks
the kernel (PR_SET_PDEATHSIG) to be killed when kdyno dies, so that `kill -9` leaves no make and no QEMU behind.
"""

from __future__ import annotations

import ctypes
import logging
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kdyno.errors import InfrastructureError

log = logging.getLogger("kdyno.process")

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class ToolMissing(InfrastructureError):
    message = "{tool} is not installed"
    hint = "run `kdyno doctor`: it prints the command that installs it"


class ToolFailed(InfrastructureError):
    message = "{command} failed with exit status {status}: {said}"
    hint = "run it by hand to see more"


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


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
    new_session: bool = True,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program; whatever happens in the body, its whole process group is gone at the end.

    `env` is added to the environment. Raises ToolMissing if there is no such program.
    """
    log.debug("%s", quoted(command))
    try:
        child = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=new_session,
            preexec_fn=_die_with_parent,
        )
    except FileNotFoundError as error:
        raise ToolMissing(tool=command[0]) from error
    try:
        yield child
    finally:
        if new_session:
            _end_group(child)
        else:
            child.kill()
        child.wait()


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the child's group; its id stays valid until the child is waited for and the group empty."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def output(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> str:
    """Run a program to its end and return its standard output; raise ToolFailed with what it said if it fails."""
    done = attempt(command, cwd=cwd, env=env, timeout=timeout)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise ToolFailed(command=quoted(command), status=done.returncode, said=said or "nothing")
    return done.stdout


def attempt(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return what it said and its status, which the caller must look at."""
    with spawned(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        out, err = child.communicate(None if stdin is None else stdin.encode(), timeout=timeout)
    return subprocess.CompletedProcess(
        child.args, child.returncode, out.decode(errors="replace"), err.decode(errors="replace")
    )


def stream_lines(
    command: Sequence[str | Path],
    on_line: Callable[[str], None],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run a program, hand each line of its output (stdout and stderr together) to `on_line`, return its status."""
    with spawned(command, cwd=cwd, env=env, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for line in child.stdout:
            on_line(line.decode(errors="replace").rstrip("\n"))
        return child.wait()
