"""Threads that are refused memory: their start and their end can be waited for."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from threading import Event

import pytest

from kdyno.base.threads import OutOfThreads, ThreadCall, ThreadCalls
from tests.at_once import at_once

LATEST = 60
"""Seconds after which a test has waited too long."""


def dies(function: Callable[..., object], arguments: tuple[object, ...]) -> int:
    """Start a thread that ends before it reports that it has begun, as one does that is refused memory."""
    held = [function, arguments]
    return start_new_thread(held.clear, ())


start_new_thread = _thread.start_new_thread


def test_a_call_returns_what_its_function_returned() -> None:
    assert ThreadCall(divmod, 7, 3).result() == (2, 1)


def test_a_call_raises_what_its_function_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        ThreadCall(divmod, 7, 0).result()


def test_a_thread_that_dies_before_it_has_begun_is_an_error_and_not_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_thread, "start_new_thread", dies)
    with at_once(LATEST), pytest.raises(OutOfThreads):
        ThreadCall(divmod, 7, 3)


def test_a_thread_that_python_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_function: object, _arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    with pytest.raises(OutOfThreads):
        ThreadCall(divmod, 7, 3)


def test_waiting_has_a_limit() -> None:
    over = Event()
    call = ThreadCall(over.wait)
    assert not call.wait(0.01) and not call.has_ended()
    over.set()
    assert call.wait(LATEST) and call.has_ended()


def test_a_group_reports_each_end_and_waits_for_all_calls() -> None:
    first, second = Event(), Event()
    with ThreadCalls() as calls:
        quick, slow = calls.start(first.wait), calls.start(second.wait)
        first.set()
        calls.wait_for_any(LATEST)
        assert quick.wait(LATEST) and not slow.has_ended()
        with at_once(LATEST):
            calls.wait_for_any(0.01)
        assert not slow.has_ended()
        second.set()
    assert slow.has_ended()


def test_calls_that_end_at_the_same_time_are_all_seen() -> None:
    with ThreadCalls() as calls:
        running = [calls.start(divmod, number, 3) for number in range(50)]
        with at_once(LATEST):
            while not all(call.has_ended() for call in running):
                calls.wait_for_any(LATEST)
        assert [call.result() for call in running] == [divmod(number, 3) for number in range(50)]
