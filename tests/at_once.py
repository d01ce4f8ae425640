"""Who opens a pipe, or waits for a lock, may wait for ever: a test that would fails instead."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def at_once(seconds: int = 20) -> Iterator[None]:
    """Fail if the body takes longer than any machine needs for it."""

    def hangs(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
