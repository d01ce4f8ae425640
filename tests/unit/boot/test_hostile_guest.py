"""What a hostile guest sends, and how much of it: floods are cut, ended and never kept whole."""

from __future__ import annotations

import io
import os
import threading
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import ValidationError

from kdyno.base.lanes import LaneName
from kdyno.base.process import spawn
from kdyno.boot.base import BootEnd, BootLimits, BootOrder
from kdyno.boot.fake import LARGEST_FILE, FakeConfig, FakeMachine, RecordedExit, RecordingUnfit
from kdyno.boot.platforms import Platform
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.boot.watch import Watch, bound_files
from kdyno.cli.boot import OUTPUT_MB
from kdyno.cli.main import make_parser
from kdyno.measure.guest import follow
from kdyno.measure.guest.follow import follow_output
from kdyno.measure.guest.job import Job, Program
from kdyno.measure.guest.stream_records import LONGEST_LINE
from tests.at_once import at_once
from tests.unit.fake_qemu import FakeQemu
from tests.unit.measure.test_stream import HELLO, line

MB = 1_000_000
MONITORS = ("-monitor", "-mon", "-qmp", "-qmp-pretty", "-gdb")
"""Options that let somebody steer QEMU."""
WAITS = "read go < go"
"""What a program does until somebody writes to the pipe `go`."""


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeQemu:
    return FakeQemu(tmp_path, monkeypatch)


def boot(tmp_path: Path, **limits: float) -> BootEnd:
    directory = tmp_path / "boot"
    directory.mkdir()
    job = Job(lane="model", icount_shift=5, iterations=1, programs=(Program(name="x", command=("yes",)),))
    machine = QemuMachine(QemuConfig(limits=BootLimits(**limits)))
    return machine.boot(BootOrder("x", Path("/k"), (), job, 1, directory))


def outputs(size: int) -> bytes:
    """A sound stream of at least so many bytes, without its end."""
    step = line({"v": 1, "type": "step", "program": "x", "phase": "command", "run": 0})
    output = line({"v": 1, "type": "output", "stream": "stdout", "hex": "61" * 8192})
    return line(HELLO) + step + output * (size // len(output) + 1)


def test_a_stream_that_floods_ends_the_boot(tmp_path: Path) -> None:
    stream = tmp_path / "s"
    stream.write_bytes(b"x" * 2 * MB)
    watch = Watch(tmp_path / "c", stream, BootLimits(stream_mb=1))
    assert watch.broken_limit() == "stream flooded: more than 1 MB"
    assert Watch(tmp_path / "c", stream, BootLimits(stream_mb=2)).broken_limit() is None


def test_what_is_left_of_a_flood_is_cut_at_its_limit_however_late_the_watch_comes(
    qemu: FakeQemu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watch, "broken_limit", lambda _watch: None)  # it never comes while the guest is there
    qemu.leaves(stream=outputs(3 * MB), console=b"y\n" * 2 * MB)
    end = boot(tmp_path, stream_mb=1.5, console_mb=0.5)
    assert (end.status, end.reason) == ("failed", "console flooded: more than 0.5 MB")
    assert (end.stream.stat().st_size, end.console.stat().st_size) == (1.5 * MB, 0.5 * MB)
    assert not end.report.complete


def test_a_guest_that_floods_its_stream_and_ends_at_once_has_failed_for_that(qemu: FakeQemu, tmp_path: Path) -> None:
    qemu.leaves(stream=outputs(3 * MB))
    end = boot(tmp_path, stream_mb=1)
    assert (end.status, end.reason) == ("failed", "stream flooded: more than 1 MB")


def test_the_kernel_itself_ends_a_program_that_writes_on_while_nobody_watches(tmp_path: Path) -> None:
    flood = tmp_path / "flood"
    command = ["sh", "-c", f"{WAITS}; exec head -c 300000000 /dev/zero"]
    os.mkfifo(tmp_path / "go")
    with at_once(60), flood.open("wb") as file, spawn(command, stdout=file, cwd=tmp_path) as child:
        bound_files(child.pid, 5 * MB)
        (tmp_path / "go").write_text("\n")
        assert child.wait() < 0
    assert flood.stat().st_size == 5 * MB


def test_a_limit_on_files_that_is_there_already_is_not_raised(tmp_path: Path) -> None:
    flood = tmp_path / "flood"
    command = ["sh", "-c", f"ulimit -S -f 1000; echo > ready; {WAITS}; exec head -c 9M /dev/zero"]
    for name in ("ready", "go"):
        os.mkfifo(tmp_path / name)
    with at_once(60), flood.open("wb") as file, spawn(command, stdout=file, cwd=tmp_path) as child:
        (tmp_path / "ready").read_text()
        bound_files(child.pid, 5 * MB)
        (tmp_path / "go").write_text("\n")
        child.wait()
    assert flood.stat().st_size <= 1000 * 1024


@pytest.mark.parametrize("on_terminal", [False, True])
@pytest.mark.parametrize("platform", ["microvm", "q35"])
@pytest.mark.parametrize("lane", ["model", "wall"])
def test_no_guest_reaches_a_monitor_of_qemu_s(
    qemu: FakeQemu, tmp_path: Path, lane: LaneName, platform: Platform, on_terminal: bool
) -> None:
    machine = QemuMachine(
        QemuConfig(lane=lane, platform=platform, accel="tcg", share=tmp_path, disk_mb=1 if lane == "wall" else None)
    )
    order = BootOrder("x", Path("/k"), (), Job(lane=lane, iterations=1), 1, tmp_path)
    (machine.converse if on_terminal else machine.boot)(order)
    [words] = [command.split() for command in qemu.commands if "-initrd" in command]
    monitors = [value for option, value in pairwise(words) if option in MONITORS]
    assert "-nodefaults" in words and "-s" not in words  # without it there would be one of its own accord
    assert monitors == (["none"] if on_terminal else [])


@pytest.mark.parametrize("limit", ["boot", "silence", "total", "console_mb", "stream_mb"])
@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "0", "-1", "1e300"])
def test_a_limit_is_a_finite_positive_number_that_limits_something(limit: str, value: str) -> None:
    with pytest.raises(ValidationError, match=limit):
        BootLimits.model_validate({limit: float(value)})


@pytest.mark.parametrize("value", [10**30, 0, -1])
def test_a_guest_has_no_more_memory_than_a_host_could_have(value: int) -> None:
    with pytest.raises(ValidationError, match="memory_mb"):
        QemuConfig(memory_mb=value)


@pytest.mark.parametrize(("option", "largest"), [("--limit", "604800"), ("--memory", "1048576")])
def test_what_kdyno_boot_takes_a_machine_takes(option: str, largest: str) -> None:
    parser = make_parser({"boot"})
    args = parser.parse_args(["boot", "KERNEL", option, largest])
    assert BootLimits(total=args.limit, stream_mb=OUTPUT_MB) and QemuConfig(memory_mb=args.memory)
    with pytest.raises(SystemExit):
        parser.parse_args(["boot", "KERNEL", option, str(int(largest) + 1)])


@pytest.mark.parametrize("field", ["seconds", "ready_seconds"])
@pytest.mark.parametrize("value", ["Infinity", "NaN", "-1"])
def test_the_times_of_a_recording_are_finite(field: str, value: str) -> None:
    with pytest.raises(ValidationError, match=field):
        RecordedExit.model_validate_json(f'{{"{field}": {value}}}')


@pytest.mark.parametrize("name", ["stream.jsonl", "console.log", "exit.json", "pmu.kpmu"])
@pytest.mark.parametrize("kind", ["pipe", "device", "huge"])
def test_a_recording_that_never_ends_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    recording = tmp_path / "recording"
    recording.mkdir()
    whole = [HELLO, {"v": 1, "type": "end", "records": 1}]
    (recording / "stream.jsonl").write_bytes(b"".join(map(line, whole)))
    (recording / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(recording / name)
    elif kind == "device":
        (recording / name).symlink_to("/dev/zero")
    else:
        (recording / name).touch()
        os.truncate(recording / name, LARGEST_FILE + 1)
    machine = FakeMachine(FakeConfig(recording=recording))
    job = Job(lane="model", iterations=1)
    with pytest.raises(RecordingUnfit, match=name):
        machine.boot(BootOrder("x", None, (), job, 1, tmp_path))
    with pytest.raises(RecordingUnfit, match=name):
        machine.stand_in("v", 0)


def test_following_a_line_without_end_takes_no_more_memory_than_a_line_may_have(tmp_path: Path) -> None:
    stream = tmp_path / "stream.jsonl"
    with stream.open("wb") as file:
        file.write(line(HELLO))
        for _ in range(50):
            file.write(b"x" * MB)
    ended = threading.Event()
    ended.set()
    tracemalloc.start()
    follow_output(stream, ended, io.BytesIO(), io.BytesIO())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * LONGEST_LINE


def test_following_stops_at_a_line_that_is_too_long_for_all_that_comes_later(tmp_path: Path) -> None:
    stream = tmp_path / "stream.jsonl"
    output_line = line({"v": 1, "type": "output", "stream": "stdout", "hex": b"hi".hex()})
    stream.write_bytes(line(HELLO) + output_line + b"x" * (LONGEST_LINE + 1) + b"\n" + output_line)
    ended, heard = threading.Event(), io.BytesIO()
    ended.set()
    follow_output(stream, ended, heard, io.BytesIO())
    assert heard.getvalue() == b"hi"


class Arriving(threading.Event):
    """An end that comes once all pieces of a file were written; each look at it writes the next one."""

    def __init__(self, stream: Path, pieces: Sequence[bytes]) -> None:
        super().__init__()
        self.stream, self.pieces = stream, list(pieces)

    def is_set(self) -> bool:
        if not self.pieces:
            return True
        with self.stream.open("ab") as file:
            file.write(self.pieces.pop(0))
        return False


def test_following_puts_lines_together_that_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL_SECONDS", 0)
    heard, complained = io.BytesIO(), io.BytesIO()
    records = [
        {"v": 1, "type": "output", "stream": name, "hex": text.encode().hex()}
        for name, text in (("stdout", "one "), ("stderr", "oops"), ("stdout", "two"))
    ]
    whole = line(HELLO) + b"".join(map(line, records))
    stream = tmp_path / "stream.jsonl"
    pieces = [whole[place : place + 7] for place in range(0, len(whole), 7)]
    follow_output(stream, Arriving(stream, pieces), heard, complained)
    assert (heard.getvalue(), complained.getvalue()) == (b"one two", b"oops")
