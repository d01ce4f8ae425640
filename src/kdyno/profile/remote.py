"""Running a program on another machine by ssh, and reading its output."""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from kdyno.base import process
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.plain_tar import Read
from kdyno.base.threads import ThreadCall

HOST = re.compile(r"[!-~]+")
SSH = (
    *("ssh", "-T"),
    # Nobody could answer a question: kdyno's children are in their own process groups, without the terminal.
    *("-o", "BatchMode=yes"),
    *("-o", "ConnectTimeout=20"),
    *("-o", "ServerAliveInterval=15"),
)
SSH_FAILED = 255
NOT_FOUND = 127
SILENCE_SECONDS = 120.0
MOST_COMPLAINT = 2000
"""The number of bytes to keep of standard error: the last ones."""


class NoHost(UserError):
    message = "{host!r} is not the name of a machine for ssh"
    hint = "name the machine as HOST or USER@HOST"


class NotConnected(InfrastructureError):
    message = "ssh cannot connect to {host}: {complaint}"
    hint = "make `ssh {host}` work without a password: with a key, and with ssh-agent if the key has a passphrase"


class NotThere(InfrastructureError):
    message = "{host} has no {program}: {complaint}"
    hint = "copy the kdyno-pgod in the directory of kdyno to it, or name its path with --program"


class RemoteFailed(InfrastructureError):
    message = "{program} on {host} ended with status {status}: {complaint}"
    hint = "run it as root with --sudo, or name the directory of its snapshots with --directory"


class RemoteSilent(InfrastructureError):
    message = "{host} has sent nothing for {seconds:g} s"
    hint = "check that machine, and pull again"


def require_host(host: str) -> None:
    """Raise NoHost for a name that ssh would take for an option, or that is not the name of a machine."""
    if host.startswith("-") or not HOST.fullmatch(host):
        raise NoHost(host=host)


@contextmanager
def remote_output(host: str, command: Sequence[str]) -> Iterator[Read]:
    """Run a program on a host; the body must read its output to the end.

    Every word is quoted for the remote shell. Raises NoHost. After the body, raises NotConnected, NotThere or
    RemoteFailed if the program failed, also instead of an error of the body, which then only results from missing
    output. Reading raises RemoteSilent.
    """
    require_host(host)
    with process.spawn([*SSH, "--", host, shlex.join(command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ssh:
        assert ssh.stdout is not None and ssh.stderr is not None
        complaint = bytearray()
        listener = ThreadCall(_keep_the_last, ssh.stderr, complaint)
        output = _Output(ssh.stdout, host)
        try:
            yield output.read
        except InfrastructureError:
            if not output.ended:
                raise
            _require_success(ssh, host, command, listener, complaint)
            raise
        _require_success(ssh, host, command, listener, complaint)


def _require_success(
    ssh: subprocess.Popen[bytes], host: str, command: Sequence[str], listener: ThreadCall[None], complaint: bytearray
) -> None:
    try:
        status = ssh.wait(SILENCE_SECONDS)
    except subprocess.TimeoutExpired:
        raise RemoteSilent(host=host, seconds=SILENCE_SECONDS) from None
    listener.wait(1)
    program = next(word for word in command if word not in ("sudo", "-n"))
    words = complaint.decode(errors="replace").strip() or "without a message"
    if status == SSH_FAILED:
        raise NotConnected(host=host, complaint=words)
    if status == NOT_FOUND:
        raise NotThere(host=host, program=program, complaint=words)
    if status != 0:
        raise RemoteFailed(host=host, program=program, status=status, complaint=words)


class _Output:
    """A reader of a pipe with a time limit for silence."""

    def __init__(self, pipe: IO[bytes], host: str) -> None:
        self._pipe = pipe
        self._host = host
        self.ended = False

    def read(self, size: int) -> bytes:
        if not select.select([self._pipe], [], [], SILENCE_SECONDS)[0]:
            raise RemoteSilent(host=self._host, seconds=SILENCE_SECONDS)
        piece = os.read(self._pipe.fileno(), size)
        self.ended = not piece
        return piece


def _keep_the_last(pipe: IO[bytes], complaint: bytearray) -> None:
    while piece := os.read(pipe.fileno(), MOST_COMPLAINT):
        complaint += piece
        del complaint[:-MOST_COMPLAINT]
