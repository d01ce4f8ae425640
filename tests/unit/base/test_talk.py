"""Talking on stderr: what a file gets, what quiet leaves, and how much time is said to be left."""

from __future__ import annotations

import re
import sys

import pytest

from kdyno.base import pace, talk
from kdyno.base.pace import Pace
from kdyno.base.talk import Talk


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (pace, talk):
        monkeypatch.setattr(module, "time", clock)
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


def test_a_file_gets_a_line_now_and_then_with_the_time_that_went_by(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    with Talk().working("building") as advance:
        for second in range(31):
            clock.now = 100.0 + second
            advance(second, None, "CC x.o")
    assert capsys.readouterr().err == "building: 15, 0:15 elapsed (CC x.o)\nbuilding: 30, 0:30 elapsed (CC x.o)\n"


def test_the_time_that_is_left_follows_from_the_speed(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    with Talk().working("booting") as advance:
        advance(0, 40, "")
        clock.now += 20
        advance(10, 40, "x")
    assert capsys.readouterr().err == "booting: 10 of 40, 0:20 elapsed, 1:00 left (x)\n"


def test_the_first_seconds_are_too_few_to_tell_the_speed(clock: Clock) -> None:
    boots = Pace()
    boots.left(0, 40)
    clock.now += 9
    assert boots.left(10, 40) == ""
    clock.now += 1
    assert boots.left(10, 40) == "0:30 left"


def test_what_an_earlier_command_did_says_nothing_about_the_speed(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    with Talk().working("booting") as advance:
        advance(20, 40, "")
        clock.now += 20
        advance(21, 40, "x")
    assert capsys.readouterr().err == "booting: 21 of 40, 0:20 elapsed, 6:20 left (x)\n"


def test_what_went_by_before_the_total_was_known_says_nothing_about_the_speed(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    with Talk().working("building", is_estimate=True) as advance:
        advance(0, None, "waiting for another kdyno")
        clock.now += 4000
        advance(0, 40, "configured")
        clock.now += 20
        advance(10, 40, "x")
    assert capsys.readouterr().err.splitlines()[1] == "building: 10 of about 40, 1:07:00 elapsed, 1:00 left (x)"


def test_work_that_is_done_or_passed_its_estimate_has_no_time_left(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    with Talk().working("building", is_estimate=True) as advance:
        for done in (1300, 1301):
            clock.now += 20
            advance(done, 1300, "x")
    assert capsys.readouterr().err == (
        "building: 1,300 of about 1,300, 0:20 elapsed (x)\nbuilding: 1,301 of about 1,301, 0:40 elapsed (x)\n"
    )


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int = 120) -> Talk:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    return Talk()


def last_bar(capsys: pytest.CaptureFixture[str]) -> str:
    """The bar as it was left, without colours."""
    out, err = capsys.readouterr()
    assert out == ""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", err).replace("\r", "\n").rstrip("\n").splitlines()[-1].rstrip()


def test_a_bar_without_a_total_shows_what_is_done_and_the_time_that_went_by(
    capsys: pytest.CaptureFixture[str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_a_terminal(monkeypatch).working("building gcc-O2", is_estimate=True) as advance:
        clock.now += 52
        advance(144, None, "CC fs/open.o")
    assert last_bar(capsys) == f"building gcc-O2 {'━' * 24} 144 0:52 elapsed  CC fs/open.o"


def test_a_bar_with_a_total_shows_what_is_left_too_and_a_guessed_total_is_said_to_be_one(
    capsys: pytest.CaptureFixture[str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for about, count in ((True, "144 of about 1,300"), (False, "144 of 1,300")):
        with on_a_terminal(monkeypatch).working("building", is_estimate=about) as advance:
            advance(0, 1300, "")
            clock.now += 52
            advance(144, 1300, "CC fs/open.o")
        assert f" {count} 0:52 elapsed 6:57 left CC fs/open.o" in last_bar(capsys)


def test_a_narrow_terminal_cuts_names_but_no_figures(
    capsys: pytest.CaptureFixture[str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_a_terminal(monkeypatch, columns=70).working(
        "building gcc-O2, gcc-O2-mitigations-off", is_estimate=True
    ) as advance:
        advance(0, 1300, "")
        clock.now += 52
        advance(144, 1300, "CC drivers/virtio/virtio_ring.o")
    assert " 144 of about 1,300 0:52 elapsed 6:57 left CC" in last_bar(capsys)


def test_markup_in_a_note_stays_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with on_a_terminal(monkeypatch).working("booting [a]") as advance:
        advance(1, 2, "[/red] block 3")
    bar = last_bar(capsys)
    assert bar.startswith("booting [a]")
    assert bar.endswith("[/red] block 3")
