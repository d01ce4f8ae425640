"""The console of a box: what kdyno gives to the user's command, keeps of it, and reports of its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
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

NUMBER = "import os, sys; print(os.getpid(), flush=True)"


class Listener(Talk):
    """Keeps warnings."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def program(text: str) -> BoxConsole:
    return BoxConsole((sys.executable, "-c", text), MOST)


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def wait_for(target: Path, text: str) -> None:
    wait_until(lambda: text in target.read_text())


def wait_for_end(target: Path) -> None:
    """Wait until the program has ended whose number is the last line of the console: it isn't reaped before the boot
    ends.
    """
    wait_for(target, "\n")
    number = target.read_text().split()[-1]
    wait_until(lambda: ") Z " in Path(f"/proc/{number}/stat").read_text())


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
    console, talk = program(f"{NUMBER}; sys.exit('SOL is in use \\x1b[31m')"), Listener()
    for name in ("first", "second"):
        with console.recording(tmp_path / name, talk):
            wait_for_end(tmp_path / name)
        assert (tmp_path / name).read_text().count("\n") == 1, "its messages are not the box's"
    assert len(talk.warnings) == 1
    assert talk.warnings[0].startswith("`console` ended before the boot did: ")
    assert talk.warnings[0].endswith(": SOL is in use")


def test_a_command_without_a_message_is_reported_with_its_status(tmp_path: Path) -> None:
    talk = Listener()
    with program(f"{NUMBER}; sys.exit(3)").recording(tmp_path / "console", talk):
        wait_for_end(tmp_path / "console")
    assert talk.warnings[0].endswith(": status 3")


def test_a_command_that_prints_without_end_is_bounded(tmp_path: Path) -> None:
    target = tmp_path / "console"
    with program("while True: print('y' * 1000)").recording(target, Listener()):
        wait_until(lambda: target.stat().st_size == MOST)
    assert target.stat().st_size == MOST


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
