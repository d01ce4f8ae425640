"""The progress of a piece of work, and the time that it will take."""

from __future__ import annotations

import time

SPEED_AFTER_SECONDS = 10.0
"""The first lines of a kernel build come much faster than the others: before that, the speed tells nothing."""


class Pace:
    """The progress of a piece of work and its remaining time, in the words that a terminal and a file both get."""

    def __init__(self, is_estimate: bool = False) -> None:
        self.is_estimate = is_estimate
        self.began = time.monotonic()
        self.first: tuple[float, int] | None = None
        """The time at which the total was first known, and the part that was done by then: it tells nothing about the
        speed.
        """

    def count(self, done: int, total: int | None) -> str:
        if total is None:
            return f"{done:,}"
        return f"{done:,} of {'about ' if self.is_estimate else ''}{max(done, total):,}"

    def elapsed(self) -> str:
        return f"{clock(time.monotonic() - self.began)} elapsed"

    def left(self, done: int, total: int | None) -> str:
        """Return the time left; empty while there is no basis for an estimate, and once an estimated total was
        passed.
        """
        if total is None:
            return ""
        now = time.monotonic()
        self.first = self.first or (now, done)
        seconds, steps = now - self.first[0], done - self.first[1]
        if seconds < SPEED_AFTER_SECONDS or steps < 1 or done >= total:
            return ""
        return f"{clock(seconds / steps * (total - done))} left"


def clock(seconds: float) -> str:
    """Return minutes and seconds, after an hour hours too: `5:10`, `1:05:10`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
