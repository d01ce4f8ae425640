"""How some work grows with its text: what it calls is counted; what a regular expression does can't be.

That is measured as a ratio of CPU times, which other work hardly disturbs.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

FACTOR = 8
MOST = 32
"""How much longer eight times the text may take: a square takes 64 times as long. What gets new memory for each text
took three times its share at the end of a long run of tests: texts beyond 128 KiB, for which malloc asks the kernel
each time, say nothing here."""
UNSEEN = 1e-3
"""Seconds below which nothing is told."""
LONG = 0.1
ATTEMPTS = 3


def seconds(work: Callable[[str], object], text: str, tries: int) -> float:
    """The shortest of several times, without collecting garbage: that takes longer the more all other tests left."""
    best = float("inf")
    gc.disable()
    try:
        for _ in range(tries):
            start = time.thread_time()
            work(text)
            best = min(best, time.thread_time() - start)
    finally:
        gc.enable()
    return best


def calls(work: Callable[[], object]) -> int:
    """How many functions some work calls, those of C with them: the same on any machine, busy or not."""
    count = 0

    def called(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def too_steep(work: Callable[[str], object], text: Callable[[int], str], most: int = 4800) -> str:
    """What is wrong with the growth of time up to texts of `most` characters; empty if nothing is.

    Shorter texts only keep what grows fastest from taking for ever: a part that is repeated at most 200 times grows too
    until there are as many.
    """
    for size, tolerable in ((most // FACTOR**2, LONG), (most // FACTOR, LONG), (most, UNSEEN)):
        if seconds(work, text(size), 1) > tolerable:
            # what shares the processor's caches may disturb one measurement, but not each of three
            for _ in range(ATTEMPTS):
                before, taken = (seconds(work, text(length), 5) for length in (size // FACTOR, size))
                if taken <= max(MOST * before, tolerable):
                    break
            else:
                return f"{size // FACTOR} characters take {before * 1e3:.2f} ms, {size} take {taken * 1e3:.2f} ms"
    return ""


def repeated(prefix: str, unit: str, tail: str) -> Callable[[int], str]:
    return lambda size: prefix + unit * (size // len(unit)) + tail


def characters(work: Callable[[], object]) -> int:
    """How many characters the texts have that some work gives names to: the same on any machine, busy or not.

    What builds its text anew for each character names as many as the square of its length.
    """
    count = 0

    def entered(frame: FrameType, event: str, argument: object) -> Any:
        known: dict[str, str] = {}

        def stepped(frame: FrameType, _event: str, _argument: object) -> Any:
            nonlocal count
            for name, value in frame.f_locals.items():
                if isinstance(value, str) and known.get(name) is not value:
                    known[name] = value
                    count += len(value)
            return stepped

        return stepped(frame, event, argument)

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
