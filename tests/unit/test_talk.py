"""Talking on stderr: what a file gets, what quiet leaves, and how much time is said to be left."""

from __future__ import annotations

import sys

import pytest

from kdyno import talk
from kdyno.talk import Talk


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(talk, "time", clock)
    return clock


def test_what_is_said_goes_to_stderr_alone(capsys: pytest.CaptureFixture[str]) -> None:
    Talk().say("hello")
    assert capsys.readouterr() == ("", "hello\n")


def test_quiet_leaves_only_warnings(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    quiet = Talk(quiet=True)
    quiet.say("hello")
    with quiet.working("booting") as advance:
        clock.now += 60
        advance(1, 2, "")
    quiet.warn("this must be seen")
    assert capsys.readouterr() == ("", "this must be seen\n")


def test_a_file_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    with Talk().working("building") as advance:
        for second in range(31):
            clock.now = 100.0 + second
            advance(second, None, "CC x.o")
    assert capsys.readouterr().err == "building: 15 (CC x.o)\nbuilding: 30 (CC x.o)\n"


def test_the_time_that_is_left_follows_from_the_speed(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    with Talk().working("booting") as advance:
        advance(0, 40, "")
        clock.now += 20
        advance(10, 40, "x")
    assert capsys.readouterr().err == "booting: 10 of about 40, 1:00 left (x)\n"


def test_what_an_earlier_command_did_says_nothing_about_the_speed(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    with Talk().working("booting") as advance:
        advance(20, 40, "")
        clock.now += 20
        advance(21, 40, "x")
    assert capsys.readouterr().err == "booting: 21 of about 40, 6:20 left (x)\n"


def test_work_that_is_done_or_passed_its_estimate_has_no_time_left(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    with Talk().working("building") as advance:
        for done in (40, 41):
            clock.now += 20
            advance(done, 40, "x")
    assert capsys.readouterr().err == "building: 40 of about 40 (x)\nbuilding: 41 of about 40 (x)\n"


def test_a_terminal_gets_a_bar_and_markup_in_a_note_stays_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    with Talk().working("booting [a]") as advance:
        advance(1, 2, "[/red] block 3")
    out, err = capsys.readouterr()
    assert out == ""
    assert "booting [a]" in err
    assert "[/red] block 3" in err
