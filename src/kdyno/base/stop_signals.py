"""The signals that ask kdyno to stop: Ctrl-C, `kill`, and a terminal that closes. All three end it in the same way.

They raise KeyboardInterrupt, so that what is under way cleans up after itself: no half-written file stays,
and no child. Those that come meanwhile change nothing but the exit status: who is asked twice would leave what it was
removing. Where an exception at any moment would do harm they set an event instead, and who waits looks at that.
"""

from __future__ import annotations

import signal
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Stop(KeyboardInterrupt):
    """What the first of them raises; it is there until somebody has dealt with it."""


class _Received:
    latest: signal.Signals | None = None
    raised: weakref.ref[_Stop] | None = None


def stop_requested() -> bool:
    """Return whether one of them came since `raise_on_stop`."""
    return _Received.latest is not None


def exit_status() -> int:
    """Return the status that shells give a program which the latest of these signals ended."""
    return 128 + (_Received.latest or signal.SIGINT)


def raise_on_stop() -> None:
    """Let each of the signals raise KeyboardInterrupt, except those that kdyno was started to ignore, as by nohup."""
    if current_thread() is not main_thread():
        return
    _Received.latest = _Received.raised = None
    for number in STOPS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _raise)


@contextmanager
def stops_set(event: Event) -> Iterator[None]:
    """Let the signals set the event while the body runs.

    A KeyboardInterrupt could come between the start of a boot's thread and the moment that the main thread knows of it:
    nobody would wait for that boot.
    """
    if current_thread() is not main_thread():
        yield
        return

    def set_event(number: int, _frame: FrameType | None) -> None:
        _remember(number)
        event.set()

    before = {number: signal.getsignal(number) for number in STOPS}
    raising = [number for number, handler in before.items() if handler in (_raise, signal.default_int_handler)]
    for number in raising:
        signal.signal(number, set_event)
    try:
        yield
    finally:
        for number in raising:
            signal.signal(number, before[number])


def _raise(number: int, _frame: FrameType | None) -> None:
    _remember(number)
    if _Received.raised and _Received.raised():
        return
    stop = _Stop()
    _Received.raised = weakref.ref(stop)
    try:
        raise stop
    finally:
        del stop  # this frame is in its traceback, and would keep it for ever


def _remember(number: int) -> None:
    _Received.latest = signal.Signals(number)
