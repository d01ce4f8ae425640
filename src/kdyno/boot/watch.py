"""Watching a boot: its files grow, its time runs, and the first limit that it breaks ends it.

A guest can write megabytes between two looks, and gigabytes if kdyno is stopped or the host swaps. So the kernel has a
limit too, which needs no looks, and what is left of a flood is cut when the boot is over.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kdyno.boot.base import BootLimits

POLL_SECONDS = 0.02
OTHER_FILES = 1 << 27
"""Bytes; a machine may write other files too, and no PMU record as large as this is read."""


@dataclass
class Watch:
    """Looks at console and stream of one boot; `ready` is when the stream got its first byte."""

    console: Path
    stream: Path
    limits: BootLimits
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.start = self.last_sign = self.clock()
        self.ready: float | None = None
        self._sizes = (0, 0)

    def broken_limit(self) -> str | None:
        """The limit that the boot has broken by now, as a reason; None while all is well."""
        now = self.clock()
        console, stream = _size(self.console), _size(self.stream)
        if (console, stream) != self._sizes:
            self._sizes = (console, stream)
            self.last_sign = now
        if stream and self.ready is None:
            self.ready = now - self.start
        if flooded := self._flooded():
            return flooded
        if now - self.start > self.limits.total:
            return f"not done within {self.limits.total:g} s"
        if self.ready is None and now - self.start > self.limits.boot:
            return f"hung at boot: no word from the agent within {self.limits.boot:g} s"
        if now - self.last_sign > self.limits.silence:
            return f"hung: silent for {self.limits.silence:g} s"
        return None

    def bound(self, pid: int, disk: int) -> None:
        """Let the kernel end the machine when a file is far beyond these limits; its disk has `disk` bytes."""
        bound_files(pid, max(disk, *(_bytes(megabytes) for _, _, megabytes in self._files())) + OTHER_FILES)

    def cut(self) -> str | None:
        """Cut what is longer than it may be, when nothing writes any more; the limit that was broken, as a reason."""
        flooded = self._flooded()
        for _, path, megabytes in self._files():
            if _size(path) > _bytes(megabytes):
                os.truncate(path, _bytes(megabytes))
        return flooded

    def _files(self) -> tuple[tuple[str, Path, float], ...]:
        return ("console", self.console, self.limits.console_mb), ("stream", self.stream, self.limits.stream_mb)

    def _flooded(self) -> str | None:
        for name, path, megabytes in self._files():
            if _size(path) > _bytes(megabytes):
                return f"{name} flooded: more than {megabytes:g} MB"
        return None


def bound_files(pid: int, most_bytes: int) -> None:
    """Let the kernel end a program that makes any file longer than this; a lower limit that it has stays."""
    soft, hard = (
        most_bytes if limit == resource.RLIM_INFINITY else min(limit, most_bytes)
        for limit in resource.prlimit(pid, resource.RLIMIT_FSIZE)
    )
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


def _bytes(megabytes: float) -> int:
    return int(megabytes * 1e6)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
