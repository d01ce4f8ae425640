"""A program on another machine, by ssh, and what it prints."""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import IO

from kdyno.base import process
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.plain_tar import Read

HOST = re.compile(r"[!-~]+")
SSH = (
    *("ssh", "-T"),
    # A question could not be answered: kdyno's children are in groups of their own, away from the terminal.
    *("-o", "BatchMode=yes"),
    *("-o", "ConnectTimeout=20"),
    *("-o", "ServerAliveInterval=15"),
)
SSH_FAILED = 255
NOT_FOUND = 127
SILENCE_SECONDS = 120.0
MOST_COMPLAINT = 2000
"""Bytes that are kept of what it says on standard error, its last."""


class NoHost(UserError):
    message = "{host!r} is no name of a machine that ssh could be given"
    hint = "name it as for ssh: HOST or USER@HOST"


class NotConnected(InfrastructureError):
    message = "ssh has no connection to {host}: {complaint}"
    hint = "`ssh {host}` has to work without a password: with a key, and ssh-agent if the key has a passphrase"


class NotThere(InfrastructureError):
    message = "{host} has no {program}: {complaint}"
    hint = "copy the kdyno-pgod that lies beside kdyno to it, or say where it is with --program"


class RemoteFailed(InfrastructureError):
    message = "{program} on {host} ended with status {status}: {complaint}"
    hint = "--sudo runs it as root there, --directory says where its snapshots are"


class RemoteSilent(InfrastructureError):
    message = "{host} has sent nothing for {seconds:g} s"
    hint = "see what it is at, and pull again"


def require_host(host: str) -> None:
    """Raise NoHost for what ssh would take for an option, or what no machine is called."""
    if host.startswith("-") or not HOST.fullmatch(host):
        raise NoHost(host=host)


@contextmanager
def remote_output(host: str, command: Sequence[str]) -> Iterator[Read]:
    """Run a program there; the body reads what it prints, to the end.

    The shell there gets every word quoted. Raises NoHost, and when the body is done NotConnected, NotThere or
    RemoteFailed if the program failed: also in the place of what the body raised, since that then says no more than
    that something is missing. Reading raises RemoteSilent.
    """
    require_host(host)
    with process.spawn([*SSH, "--", host, shlex.join(command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ssh:
        assert ssh.stdout is not None and ssh.stderr is not None
        complaint = bytearray()
        listener = Thread(target=_keep_the_last, args=(ssh.stderr, complaint), daemon=True)
        listener.start()
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
    ssh: subprocess.Popen[bytes], host: str, command: Sequence[str], listener: Thread, complaint: bytearray
) -> None:
    try:
        status = ssh.wait(SILENCE_SECONDS)
    except subprocess.TimeoutExpired:
        raise RemoteSilent(host=host, seconds=SILENCE_SECONDS) from None
    listener.join(1)
    program = next(word for word in command if word not in ("sudo", "-n"))
    words = complaint.decode(errors="replace").strip() or "nothing was said"
    if status == SSH_FAILED:
        raise NotConnected(host=host, complaint=words)
    if status == NOT_FOUND:
        raise NotThere(host=host, program=program, complaint=words)
    if status != 0:
        raise RemoteFailed(host=host, program=program, status=status, complaint=words)


class _Output:
    """What comes through a pipe, as long as something comes."""

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
