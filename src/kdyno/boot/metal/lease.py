"""The lease of a box: one kdyno has it, and says so in a file there. No clock of the box decides anything.

While the box is up, its holder's ssh session keeps a lock (flock), which ends with the session; a session without a
sign of life for SILENCE_SECONDS ends itself. A restart ends it, too: during the first seconds after one, only the
holder named in the file gets the lease. So an obsolete file of a killed kdyno is in force for RETURN_SECONDS at most.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from threading import Event

from kdyno.base.errors import InfrastructureError, KdynoError, UserError
from kdyno.base.process import spawn
from kdyno.base.threads import ThreadCall
from kdyno.boot.metal.ssh import FAILED, BoxFull, BoxUnreachable, BoxUntrusted, Ssh

BEAT_SECONDS = 30
SILENCE_SECONDS = 120
RETURN_SECONDS = 300
"""The time in seconds after a restart in which the box waits for the holder of its lease."""
ANSWER_SECONDS = 60.0
END_SECONDS = 20.0
"""The time in seconds until a session that holds no lease has ended after its answer."""
AGAIN_SECONDS = 2.0
LONGEST_ANSWER = 600
REQUEST = "the request for a lease"

HOLD = """
umask 077
mkdir -p "$1" && cd "$1" || exit 1
if [ -L "$1" ] || [ ! -O . ] || [ -L lock ] || [ -L lease ]; then echo foreign; exit; fi
exec 9>>lock
if ! flock -n 9; then echo busy; head -c 400 lease; exit; fi
if [ ! -e "$1/lock" ]; then echo again; exit; fi
up=$(cut -d. -f1 /proc/uptime)
if [ -s lease ] && ! grep -qF "$2" lease && [ "$up" -lt "$4" ]; then
    echo "restarted $(($4 - up))"; head -c 400 lease; exit
fi
if ! printf '%s\\n' "$3" >lease; then rm -f lease; echo full; exit; fi
echo held
while word=$(timeout "$5" dd bs=64 count=1 2>/dev/null 9>&-) && [ -n "$word" ]; do
    case $word in *end*)
        cd /; [ ! -e "$1/clean" ] || sh "$1/clean" >/dev/null 2>&1 9>&-; rm -rf "$1"; exit;;
    esac
done
"""

REMOVE = """
if grep -qsF "$2" "$1/lease"; then [ ! -e "$1/clean" ] || sh "$1/clean" >/dev/null 2>&1; rm -rf "$1"; fi
"""
REMOVE_SECONDS = 20.0


class BoxHeld(InfrastructureError):
    message = "{host} is in use by another kdyno ({holder}){until}"
    hint = "wait until it has ended; a lease without a living holder ends by itself"


class BoxDirectoryForeign(UserError):
    message = "{host}: {directory} belongs to another user there, or has symbolic links: kdyno doesn't write to it"
    hint = "look at it there, and remove it"


class Lease:
    """The lease of one box by this process."""

    def __init__(self, ssh: Ssh, directory: str) -> None:
        self.ssh, self.directory = ssh, directory
        self.token = secrets.token_hex(8)
        self._session: ExitStack | None = None
        self._child: subprocess.Popen[bytes] | None = None

    def take(self) -> None:
        """Take the lease, unless this process has it. Raises BoxHeld and what ssh raises."""
        if self._child is not None and self._child.poll() is None:
            return
        end = time.monotonic() + SILENCE_SECONDS + BEAT_SECONDS
        while _is_passing(answer := self._ask(), self.token) and time.monotonic() < end:
            time.sleep(AGAIN_SECONDS)
        if answer[0].startswith("restarted ") and _has_ended(answer[1]):
            answer = self._ask(return_seconds=0)
        word, holder = answer
        if word == "held":
            return
        self.drop()
        if word == "foreign":
            raise BoxDirectoryForeign(host=self.ssh.host, directory=self.directory)
        if word == "full" or "No space left" in word:
            raise BoxFull(host=self.ssh.host, place=self.directory)
        if word == "busy" or word.startswith("restarted "):
            until = f"; it restarted just now, and waits {word.split()[1]} s for that one" if " " in word else ""
            raise BoxHeld(host=self.ssh.host, holder=_describe_holder(holder), until=until)
        raise BoxUntrusted(host=self.ssh.host, what=REQUEST, why=repr(word[:80]))

    def _ask(self, return_seconds: int = RETURN_SECONDS) -> tuple[str, str]:
        """Start a session; return the first line of the answer, and the rest. Raises what ssh raises."""
        self.drop()
        about = {"holder": _this_user(), "pid": os.getpid()}
        line = json.dumps({"token": self.token, **about})
        numbers = (str(return_seconds), str(SILENCE_SECONDS))
        words = self.ssh.words(self.ssh.script(HOLD, self.directory, self.token, line, *numbers))
        session = ExitStack()
        child = session.enter_context(
            spawn(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        )
        self._session, self._child = session, child
        assert child.stdout
        answer = _Answer(child)
        word = answer.first_line(ANSWER_SECONDS)
        if word is None:
            self.drop()
            raise BoxUnreachable(host=self.ssh.host, why="no answer to the request for a lease")
        if word == "held":
            ThreadCall(_beat, child)
            return word, ""
        rest = answer.rest(ANSWER_SECONDS)
        try:
            status = child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.drop()
            raise BoxUntrusted(
                host=self.ssh.host, what=REQUEST, why=f"its answer does not end: {word[:80]!r}"
            ) from None
        if status == FAILED:
            raise self.ssh.failure(f"{word}\n{rest}")
        return word, rest

    def release(self) -> None:
        """End the lease, and remove all that kdyno has on the box, if the box can be reached."""
        child = self._child
        try:
            if child is not None and child.poll() is None and child.stdin:
                child.stdin.write(b"end\n")
                child.stdin.flush()
                child.wait(ANSWER_SECONDS)
            else:
                self.ssh.run(self.ssh.script(REMOVE, self.directory, self.token), seconds=REMOVE_SECONDS)
        except (OSError, subprocess.TimeoutExpired, KdynoError):
            pass  # the box has gone: its lease ends by itself
        self.drop()

    def drop(self) -> None:
        """End the session only: the file of the lease stays for this process."""
        session, child = self._session, self._child
        self._session = self._child = None
        if child and child.stdin:
            with suppress(OSError):
                child.stdin.close()
        if session:
            session.close()


class _Answer:
    """The bounded answer of a session, read by a thread: the box may hang, or print without end."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child, self._content = child, b""
        self._line, self._end = Event(), Event()
        ThreadCall(self._read)

    def _read(self) -> None:
        assert self._child.stdout
        while len(self._content) < LONGEST_ANSWER and (piece := os.read(self._child.stdout.fileno(), LONGEST_ANSWER)):
            self._content += piece
            if b"\n" in self._content:
                self._line.set()
        self._line.set()
        self._end.set()

    def first_line(self, seconds: float) -> str | None:
        """Return the first line; None if there was none in time."""
        self._line.wait(seconds)
        line, newline, _ = self._content.partition(b"\n")
        return line.decode(errors="replace").strip() if newline or self._end.is_set() else None

    def rest(self, seconds: float) -> str:
        self._end.wait(seconds)
        return self._content.partition(b"\n")[2][:LONGEST_ANSWER].decode(errors="replace")


def _is_passing(answer: tuple[str, str], token: str) -> bool:
    """Return whether the same request may have another answer soon: the session of a lost connection of this process
    ends, or another holder has just removed the files.
    """
    word, holder = answer
    return word == "again" or (word == "busy" and token in holder)


def _beat(child: subprocess.Popen[bytes]) -> None:
    """Send a sign of life now and then, until the session ends."""
    assert child.stdin
    while child.poll() is None:
        try:
            child.stdin.write(b"on\n")
            child.stdin.flush()
        except (OSError, ValueError):
            return
        time.sleep(BEAT_SECONDS)


def _this_user() -> str:
    return f"{os.environ.get('USER') or os.getuid()}@{socket.gethostname()}"


def _has_ended(text: str) -> bool:
    """Return whether the holder that a file of a lease names was a process of this user and host, and has ended."""
    try:
        about = json.loads(text)
        if about["holder"] == _this_user():
            os.kill(int(about["pid"]), 0)
    except ProcessLookupError:
        return True
    except (ValueError, TypeError, KeyError, OverflowError, OSError):
        pass
    return False


def _describe_holder(text: str) -> str:
    """Return the holder that a file of a lease names, for people; the file is untrusted."""
    try:
        about = json.loads(text)
        return f"{str(about['holder'])[:80]}, process {int(about['pid'])}"
    except (ValueError, TypeError, KeyError):
        return "unknown"
