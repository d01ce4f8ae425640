"""Calls in threads, whose start and end can be waited for even if the thread is refused memory.

`threading.Thread.start` waits without a limit for the new thread to report that it has begun. A thread that is refused
memory before that report ends silently, and the wait never ends (https://github.com/python/cpython/issues/140746). The
same is true of a `concurrent.futures.Future` whose thread ends before it has set the result.
"""

from __future__ import annotations

import _thread
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from kdyno.base.errors import InfrastructureError

Result = TypeVar("Result")
LOOK_SECONDS = 0.05
"""The time between checks that a thread still exists."""


class OutOfThreads(InfrastructureError):
    message = "no more threads can be started: memory is used up, or a limit (ulimit -u, ulimit -v) is reached"
    hint = "end other programs or raise the limit, then run the same command again: finished work is kept"


class _Ticket:
    """An object that only one thread holds: it exists as long as the thread does."""


class ThreadCall(Generic[Result]):
    """A call of a function in a thread of its own, which is started at once. Raises OutOfThreads.

    Python doesn't wait for the thread when it exits; `result` and `wait` do. `on_end` is called in the thread.
    """

    def __init__(
        self, function: Callable[..., Result], *arguments: Any, on_end: Callable[[], None] | None = None
    ) -> None:
        self._function, self._arguments, self._on_end = function, arguments, on_end
        self._result: Result | None = None
        self._error: BaseException | None = None
        self._begun, self._ended = _thread.allocate_lock(), _thread.allocate_lock()
        self._begun.acquire()
        self._ended.acquire()
        ticket = _Ticket()
        self._ticket = weakref.ref(ticket)
        try:
            _thread.start_new_thread(self._carry_out, (ticket,))
        except RuntimeError:
            raise OutOfThreads() from None
        del ticket
        while not self._begun.acquire(timeout=LOOK_SECONDS):
            if self._ticket() is None and not self._begun.acquire(blocking=False):
                raise OutOfThreads()

    def _carry_out(self, ticket: _Ticket) -> None:
        del ticket  # the traceback of an error would keep it
        try:
            self._begun.release()
            self._result = self._function(*self._arguments)
        except BaseException as error:
            self._error = error
        finally:
            self._ended.release()
            if self._on_end:
                self._on_end()

    def has_ended(self) -> bool:
        """Return whether the thread has ended, with or without a result."""
        return not self._ended.locked() or self._ticket() is None

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the thread, at most so many seconds; None: without a limit. Return `has_ended`."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self.has_ended():
            left = LOOK_SECONDS if deadline is None else min(LOOK_SECONDS, deadline - time.monotonic())
            if left <= 0:
                return False
            if self._ended.acquire(timeout=left):
                self._ended.release()
        return True

    def result(self) -> Result:
        """Return what the function returned, or raise what it raised; wait for it."""
        self.wait()
        if self._error is not None:
            raise self._error
        return cast(Result, self._result)


class ThreadCalls:
    """A group of calls. As a context manager, it waits for their ends."""

    def __init__(self) -> None:
        self._calls: list[ThreadCall[Any]] = []
        self._news = _thread.allocate_lock()
        """Locked until a call ends."""
        self._news.acquire()

    def start(self, function: Callable[..., Result], *arguments: Any) -> ThreadCall[Result]:
        """Start a call. Raises OutOfThreads."""
        call = ThreadCall(function, *arguments, on_end=self._on_end)
        self._calls = [*(other for other in self._calls if not other.has_ended()), call]
        return call

    def wait_for_any(self, seconds: float) -> None:
        """Wait until a call ends that had not ended when this method last returned, at most so many seconds."""
        self._news.acquire(timeout=seconds)

    def _on_end(self) -> None:
        with suppress(RuntimeError):  # another call ended, too, since `wait_for_any` returned
            self._news.release()

    def __enter__(self) -> ThreadCalls:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for call in self._calls:
            call.wait()
