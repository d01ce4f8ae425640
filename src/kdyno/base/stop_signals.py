"""The signals that ask kdyno to stop: Ctrl-C, `kill`, and a terminal that closes. All three end it in the same way.

They raise KeyboardInterrupt, so that the work under way cleans up: no half-written file stays, and no child. Where an
exception at any moment would do harm they set an event instead, which the waiting thread checks.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Received:
    latest: signal.Signals | None = None


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
    _Received.latest = None
    for number in STOPS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _raise)


@contextmanager
def stops_set(event: Event) -> Iterator[None]:
    """Let the signals set the event while the body runs.

    A KeyboardInterrupt could come while the main thread holds the lock of a future, which the thread of a boot needs to
    end: both would wait for ever.
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
    raise KeyboardInterrupt


def _remember(number: int) -> None:
    _Received.latest = signal.Signals(number)
