"""Ctrl-C where a KeyboardInterrupt at any moment would do harm: it sets an event, and who waits looks at that."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread


@contextmanager
def ctrl_c_sets(event: Event) -> Iterator[None]:
    """Let Ctrl-C set the event while the body runs.

    A KeyboardInterrupt could come while the main thread holds the lock of a future, which the thread of a boot needs to
    end: both would wait for ever.
    """
    ignored = signal.getsignal(signal.SIGINT) is not signal.default_int_handler  # as in a background job
    if ignored or current_thread() is not main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda _number, _frame: event.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
