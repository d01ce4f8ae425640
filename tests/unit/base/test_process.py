"""Other programs: queries have a time limit, long work has a warden, and neither outlives kdyno."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kdyno.base import process
from kdyno.base.process import ToolFailed, ToolHangs, ToolMissing, TooMuchOutput, attempt, output, spawn

FAMILY = ["sh", "-c", "sleep 60 & echo $$ $! > pids; wait"]
"""A program with a child of its own; both say in the file `pids` who they are."""


def is_running(pid: str) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return "State:\tZ" not in status


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120  # only what would never be must end here
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pids(folder: Path) -> list[str]:
    path = folder / "pids"
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text().split()


def test_a_query_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    with pytest.raises(ToolHangs, match=r"sleep 60.* did not end within 1 s"):
        attempt(FAMILY, cwd=tmp_path, timeout=1)
    wait_until(lambda: not any(map(is_running, pids(tmp_path))))


@pytest.mark.parametrize("guarded", [False, True])
def test_only_a_guarded_program_has_a_warden(monkeypatch: pytest.MonkeyPatch, guarded: bool) -> None:
    wardens: list[int] = []

    @contextmanager
    def warden() -> Iterator[int]:
        wardens.append(1)
        yield 0

    monkeypatch.setattr(process, "_warden", warden)
    assert output(["sh", "-c", "echo text"], guarded=guarded) == "text\n"
    assert bool(wardens) is guarded


def test_a_guarded_program_dies_with_kdyno_even_if_that_is_killed(tmp_path: Path) -> None:
    code = f"from kdyno.base.process import attempt; attempt({FAMILY!r}, guarded=True)"
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path) as parent:
        started = pids(tmp_path)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, started)))


def test_a_program_that_begins_a_session_of_its_own_is_ended_after_a_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.1)
    with spawn(["setsid", "sleep", "60"]) as child:
        wait_until(lambda: os.getsid(child.pid) == child.pid)
    assert child.returncode == -signal.SIGKILL


def test_a_program_that_fails_is_quoted_with_its_last_words() -> None:
    with pytest.raises(ToolFailed, match=r"^sh -c '.*' failed with exit status 3: oops$"):
        output(["sh", "-c", "echo; echo oops >&2; exit 3"])
    with pytest.raises(ToolFailed, match="status 1: only this"):
        output(["sh", "-c", "echo only this; exit 1"])
    with pytest.raises(ToolFailed, match="status 1: nothing"):
        output(["sh", "-c", "exit 1"])
    with pytest.raises(ToolMissing, match="/no/such/program is not installed"):
        output(["/no/such/program"])


def test_input_and_output_may_be_any_bytes() -> None:
    done = attempt(["sh", "-c", "cat"], stdin="ü\udcff")
    assert (done.returncode, done.stdout) == (0, "ü�")


def test_an_interrupt_just_when_a_program_has_been_started_ends_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **options: Any) -> None:
            super().__init__(command, **options)
            if command[0] == "sh":
                pids(tmp_path)
                raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        attempt(FAMILY, cwd=tmp_path, guarded=True)
    wait_until(lambda: not any(is_running(pid) for pid in pids(tmp_path)))


def test_a_program_that_prints_without_end_is_ended_and_no_more_than_the_limit_is_kept() -> None:
    with pytest.raises(TooMuchOutput, match=r"^yes printed more than 1,000,000 bytes$"):
        output(["yes"], most=1_000_000)
    with pytest.raises(TooMuchOutput):
        attempt(["sh", "-c", "yes >&2"], most=1_000_000, guarded=True)
    assert len(output(["head", "-c", "100000", "/dev/zero"], most=100_000)) == 100_000


def test_what_a_program_is_given_reaches_it_while_it_prints_and_may_be_left_unread() -> None:
    text = "line of text\n" * 100_000
    assert attempt(["cat"], stdin=text).stdout == text
    assert attempt(["true"], stdin=text).stdout == ""
    assert attempt(["cat"], stdin="").stdout == ""


def test_a_line_without_end_comes_in_pieces() -> None:
    lines: list[str] = []
    assert process.stream_lines(["head", "-c", "3000000", "/dev/zero"], lines.append) == 0
    assert sum(map(len, lines)) == 3_000_000 and max(map(len, lines)) == process.LONGEST_LINE
