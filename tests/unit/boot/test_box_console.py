"""The console of a box: what kdyno gives to the user's command, keeps of it, and reports of its end."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from kdyno.base.process import ToolMissing
from kdyno.base.talk import Talk
from kdyno.boot.metal.box_console import BoxConsole

MOST = 100_000
UNTIL_HUNG_UP = """
import os, sys
print("terminal" if sys.stdin.isatty() else "no terminal", flush=True)
try:
    sys.stdin.read()
except OSError:
    pass
print("session closed", flush=True)
"""


class Listener(Talk):
    """Keeps warnings."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def program(text: str) -> BoxConsole:
    return BoxConsole((sys.executable, "-c", text), MOST)


def wait_for(target: Path, text: str) -> None:
    end = time.monotonic() + 60
    while text not in target.read_text():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_command_has_a_terminal_for_as_long_as_the_boot_and_time_to_close_its_session(tmp_path: Path) -> None:
    target, talk = tmp_path / "console", Listener()
    with program(UNTIL_HUNG_UP).recording(target, talk):
        wait_for(target, "terminal")
        assert target.read_text() == "terminal\n"
    assert target.read_text() == "terminal\nsession closed\n"
    assert talk.warnings == []


def test_a_command_that_ignores_the_end_of_its_terminal_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdyno.boot.metal.box_console.FAREWELL_SECONDS", 0.1)
    start = time.monotonic()
    with program("import time; time.sleep(1000)").recording(tmp_path / "console", Listener()):
        pass
    assert time.monotonic() - start < 60


def test_a_command_that_ended_before_the_boot_is_reported_once_with_its_message(tmp_path: Path) -> None:
    console, talk, target = program("import sys; sys.exit('SOL is in use \\x1b[31m')"), Listener(), tmp_path / "console"
    for _ in range(2):
        with console.recording(target, talk):
            time.sleep(1)
    assert len(talk.warnings) == 1
    assert talk.warnings[0].startswith("`console` ended before the boot did: ")
    assert talk.warnings[0].endswith(": SOL is in use")
    assert target.read_bytes() == b"", "its messages are not the box's"


def test_a_command_without_a_message_is_reported_with_its_status(tmp_path: Path) -> None:
    talk = Listener()
    with program("import sys; sys.exit(3)").recording(tmp_path / "console", talk):
        time.sleep(1)
    assert talk.warnings[0].endswith(": status 3")


def test_a_command_that_prints_without_end_is_bounded(tmp_path: Path) -> None:
    target = tmp_path / "console"
    with program("while True: print('y' * 1000)").recording(target, Listener()):
        time.sleep(1)
    assert target.stat().st_size <= MOST


def test_what_was_recorded_before_stays(tmp_path: Path) -> None:
    target = tmp_path / "console"
    target.write_text("earlier\n")
    with program("print('later')").recording(target, Listener()):
        wait_for(target, "later")
    assert target.read_text() == "earlier\nlater\n"


def test_without_a_command_nothing_is_recorded(tmp_path: Path) -> None:
    with BoxConsole((), MOST).recording(tmp_path / "console", Listener()):
        pass
    assert not (tmp_path / "console").exists()


def test_a_boot_that_fails_ends_the_command(tmp_path: Path) -> None:
    target = tmp_path / "console"
    with pytest.raises(ZeroDivisionError), program(UNTIL_HUNG_UP).recording(target, Listener()):
        wait_for(target, "terminal")
        raise ZeroDivisionError
    assert target.read_text().endswith("session closed\n")


def test_a_command_that_is_gone_is_an_error_and_leaves_nothing_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ToolMissing), BoxConsole(("no-such-program",), MOST).recording(tmp_path / "c", Listener()):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before
