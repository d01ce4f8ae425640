"""What is asked of every reader of foreign bytes: it reads, or it says in one KdynoError why it can't; and no more.

It takes no more than a bounded time and memory, leaves no file behind, and whatever it raises or returns can be shown.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.errors import KdynoError

MOST_SECONDS = 20.0
"""Of CPU time, for an input of LARGEST bytes or less. The slowest sound one takes a fortieth: this ends what hangs, and
says nothing of speed."""
MOST_MEGABYTES = 512
"""Of address space beyond what the process had before."""
LARGEST = 1 << 16
"""Bytes of an input. Larger ones find little more; limits on size have tests of their own."""
LONGEST_MESSAGE = 20_000


class Trespass(AssertionError):
    """What a reader did that it must not do."""


@dataclass(frozen=True)
class Target:
    """One reader of foreign bytes."""

    name: str
    read: Callable[[Path], object]
    """Reads the file as kdyno does; asserts what must hold of what it read."""
    seeds: Callable[[], Sequence[bytes]]
    """Sound inputs to start from."""
    words: Sequence[bytes] = ()
    """What its format is made of."""
    file: str = "input"
    """The name of the file that it reads."""
    examples: int = 300
    """Inputs in one run of the long tests: a few seconds. The others take a third."""


def check(target: Target, content: bytes, directory: Path) -> None:
    """Let a reader read these bytes from a file in an empty directory. Raises Trespass, or what the reader raised."""
    path = directory / target.file
    path.write_bytes(content)
    try:
        with bounded_time(), bounded_memory():
            target.read(path)
    except KdynoError as error:
        message = f"{error} {error.advice}"
        message.encode("utf-8", errors="surrogateescape")  # half a character can't be written
        if len(message) > LONGEST_MESSAGE:
            raise Trespass(f"a message of {len(message):,} characters") from error
    except MemoryError as error:
        raise Trespass(f"more than {MOST_MEGABYTES} MB of memory") from error
    path.unlink()
    if left := list(directory.iterdir()):
        raise Trespass(f"it left {left[0]}")


@contextmanager
def bounded_time() -> Iterator[None]:
    """Let the body have so much CPU time and no more: what takes longer gets a Trespass."""

    def ended(_signal: int, _frame: object) -> None:
        raise Trespass(f"more than {MOST_SECONDS:g} s of CPU time")

    usual = signal.signal(signal.SIGPROF, ended)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, usual)


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Let the body have so much more address space and no more: what asks for more gets a MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (MOST_MEGABYTES << 20), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
