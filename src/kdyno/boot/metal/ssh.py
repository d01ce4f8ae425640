"""Commands on a box, by the system's ssh. What the box prints is untrusted: sizes and times are bounded."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.process import ToolHangs, TooMuchOutput, attempt, spawn
from kdyno.boot.base import MachineUnreachable
from kdyno.boot.watch import bound_files

OPTIONS = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "UpdateHostKeys": "no",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "4",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no",
    "ControlPath": "none",
    "RequestTTY": "no",
    "LogLevel": "ERROR",
}
"""No question is asked, no unknown key is accepted, and a box gets nothing of this host. A connection without an answer
ends after 20 s."""
FAILED = 255
"""The exit status of ssh when ssh itself failed."""
SECONDS = 60.0
"""The time limit of a short command, in seconds."""
MOST_OUTPUT = 1_000_000
MOST_MESSAGE = 100_000
SLOWEST_COPY = 250_000
"""Bytes per second below which a copy is given up."""
KEY_REFUSED = ("Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED")
RESULT_SHOWN = 300


class UnknownHostKey(UserError):
    message = "ssh does not connect to {host}: its host key is unknown or has changed"
    hint = "compare its fingerprint with the one that the box shows, and run `ssh {host}` once to accept it"


class NotLetIn(UserError):
    message = "ssh cannot log in to {host}: {why}"
    hint = "`ssh -o BatchMode=yes {host} true` must work without a question"


class BoxUnreachable(MachineUnreachable):
    message = "{host} cannot be reached: {why}"
    hint = "check that `ssh {host} true` works"


class NotRoot(UserError):
    message = "{host}: a kernel can be started only by root, and {user} may not use sudo there without a password"
    hint = "log in as root (root@HOST), or permit it: `USER ALL=(ALL) NOPASSWD: ALL` in /etc/sudoers.d"


class BoxFailed(InfrastructureError):
    message = "{host} could not {what}: {why}"
    hint = "{way}"


class BoxFull(InfrastructureError):
    message = "the disk of {host} that holds {place} is full"
    hint = "make room there; kdyno removed its incomplete file"


class BoxUntrusted(InfrastructureError):
    message = "{host} answered {what} with something else: {why}"
    hint = "run `ssh {host}` and look; start-up files of the shell there must not print anything"


@dataclass(frozen=True)
class RemoteResult:
    """The end of a command on the box."""

    status: int
    output: str
    message: str

    @property
    def last_message(self) -> str:
        """Return the last line of its messages, or of its output, for people."""
        lines = (self.message.strip() or self.output.strip()).splitlines()
        return lines[-1][-RESULT_SHOWN:] if lines else f"exit status {self.status}"


class Ssh:
    """Runs programs on one box as root."""

    def __init__(self, host: str, config: Path | None = None) -> None:
        self.host = host
        self._local = ("ssh", *(("-F", str(config)) if config else ()), *_options(), "--", host)

    @cached_property
    def _root(self) -> tuple[str, ...]:
        """Return the words that make a command root's. Raises what `run` raises, and NotRoot."""
        user = self._run(("id", "-u", "-n")).output.strip()[:64]
        if user == "root":
            return ()
        if self._run(("sudo", "-n", "true")).status != 0:
            raise NotRoot(host=self.host, user=user)
        return ("sudo", "-n")

    def words(self, remote: Sequence[str]) -> tuple[str, ...]:
        """Return the command of this host that runs these words on the box, as root."""
        return (*self._local, shlex.join((*self._root, *remote)))

    def script(self, text: str, *arguments: str) -> tuple[str, ...]:
        """Return the words that let the box's shell run a text."""
        return ("sh", "-c", text, "kdyno", *arguments)

    def run(self, remote: Sequence[str], *, seconds: float = SECONDS, most: int = MOST_OUTPUT) -> RemoteResult:
        """Run a short command. Raises UnknownHostKey, NotLetIn, NotRoot, BoxUnreachable and BoxUntrusted."""
        return self._run((*self._root, *remote), seconds=seconds, most=most)

    def _run(self, remote: Sequence[str], *, seconds: float = SECONDS, most: int = MOST_OUTPUT) -> RemoteResult:
        try:
            done = attempt((*self._local, shlex.join(remote)), timeout=seconds, most=most)
        except ToolHangs:
            raise BoxUnreachable(host=self.host, why=f"no answer within {seconds:g} s") from None
        except TooMuchOutput:
            raise BoxUntrusted(host=self.host, what="a short command", why=f"more than {most:,} bytes") from None
        result = RemoteResult(done.returncode, done.stdout, done.stderr)
        if result.status == FAILED:
            raise self.failure(result.message)
        return result

    def failure(self, message: str) -> UserError | InfrastructureError:
        """Return the error for a message of ssh itself."""
        last = RemoteResult(FAILED, "", message).last_message
        if any(text in message for text in KEY_REFUSED):
            return UnknownHostKey(host=self.host)
        if "Permission denied" in message:
            return NotLetIn(host=self.host, why=last)
        return BoxUnreachable(host=self.host, why=last)

    def copy(self, source: Path, target: str) -> None:
        """Copy a file to the box, whole or not at all; an equal file stays. Raises BoxFull, BoxFailed and what `run`
        raises.
        """
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        command = self.words(self.script(COPY, target, digest))
        seconds = SECONDS + source.stat().st_size / SLOWEST_COPY
        with tempfile.TemporaryFile() as message, source.open("rb") as content:
            with spawn(command, stdin=content, stderr=message) as child:
                bound_files(child.pid, MOST_MESSAGE)
                try:
                    status = child.wait(seconds)
                except subprocess.TimeoutExpired:
                    raise BoxUnreachable(host=self.host, why=f"a copy took more than {seconds:.0f} s") from None
            message.seek(0)
            result = RemoteResult(status, "", message.read(MOST_MESSAGE).decode(errors="replace"))
        if status == FAILED:
            raise self.failure(result.message)
        if "No space left" in result.message:
            raise BoxFull(host=self.host, place=str(Path(target).parent))
        if status != 0:
            raise BoxFailed(
                host=self.host, what=f"store {target}", why=result.last_message, way="look at the box, and try again"
            )


COPY = """
umask 077
if [ "$(sha256sum <"$1" 2>/dev/null)" = "$2  -" ]; then exec cat >/dev/null; fi
mkdir -p "${1%/*}" && cat >"$1.part" && sync "$1.part" || { rm -f "$1.part"; exit 1; }
if [ "$(sha256sum <"$1.part")" != "$2  -" ]; then echo 'the copy is cut short' >&2; rm -f "$1.part"; exit 1; fi
chmod 700 "$1.part" && mv "$1.part" "$1"
"""


def _options() -> tuple[str, ...]:
    return tuple(word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}"))
