"""Watching a boot: its files grow, its time runs, and the first limit that it breaks ends it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kdyno.machine.base import Limits

POLL_SECONDS = 0.02


@dataclass
class Watch:
    """Looks at console and stream of one boot; `ready` is when the stream got its first byte."""

    console: Path
    stream: Path
    limits: Limits
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.start = self.last_sign = self.clock()
        self.ready: float | None = None
        self._seen = (0, 0)

    def broken_limit(self) -> str | None:
        """The limit that the boot has broken by now, as a reason; None while all is well."""
        now = self.clock()
        console, stream = _size(self.console), _size(self.stream)
        if (console, stream) != self._seen:
            self._seen = (console, stream)
            self.last_sign = now
        if stream and self.ready is None:
            self.ready = now - self.start
        if console > self.limits.console_mb * 1e6:
            return f"console flooded: more than {self.limits.console_mb:g} MB"
        if now - self.start > self.limits.total:
            return f"not done within {self.limits.total:g} s"
        if self.ready is None and now - self.start > self.limits.boot:
            return f"hung at boot: no word from the agent within {self.limits.boot:g} s"
        if now - self.last_sign > self.limits.silence:
            return f"hung: silent for {self.limits.silence:g} s"
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
