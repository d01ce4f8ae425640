"""The agent stream: what is sound is read, what is hostile or cut short is named and never raises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdyno.instrument.stream import LONGEST_LINE, read_stream

HELLO = {
    "v": 1,
    "type": "hello",
    "agent": "0.1.0",
    "kernel": "6.12.1",
    "lane": "model",
    "icount_shift": 5,
    "cpus": 1,
    "init": True,
}
BENCHMARK = {
    "v": 1,
    "type": "benchmark",
    "name": "lat_x",
    "test": "lat_x",
    "unit": "instr",
    "direction": "lower",
    "description": "x",
}
SAMPLE = {"v": 1, "type": "sample", "benchmark": "lat_x", "iteration": 0, "elapsed": 500, "work": 10}


def line(record: object) -> bytes:
    return json.dumps(record).encode() + b"\n"


def stream(tmp_path: Path, *lines: bytes) -> Path:
    path = tmp_path / "stream.jsonl"
    path.write_bytes(b"".join(lines))
    return path


WHOLE = (line(HELLO), line(BENCHMARK), line(SAMPLE), line({"v": 1, "type": "end", "records": 3}))


def test_a_whole_stream_is_complete_and_without_fault(tmp_path: Path) -> None:
    report = read_stream(stream(tmp_path, *WHOLE))
    assert report.complete
    assert report.fault is None
    assert [(sample.elapsed, sample.work) for sample in report.samples] == [(500, 10)]


def test_a_stream_without_its_end_is_not_complete(tmp_path: Path) -> None:
    report = read_stream(stream(tmp_path, *WHOLE[:3]))
    assert not report.complete
    assert len(report.samples) == 1


def test_no_stream_at_all_is_a_fault_not_an_exception(tmp_path: Path) -> None:
    assert read_stream(tmp_path / "none").fault == "no stream"


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ((*WHOLE[:2], WHOLE[2][:-5]), "agent record 2 is truncated"),
        ((*WHOLE[:2], b'{"v":1,\xff\xfe}\n'), "agent record 2 is not UTF-8 (byte 7)"),
        ((*WHOLE[:2], b"not json\n"), "agent record 2: the record: Invalid JSON"),
        ((line(HELLO | {"v": 2}),), "agent record 0: version 2, but this kdyno reads version 1"),
        ((*WHOLE[:2], line(SAMPLE | {"extra": 1})), "agent record 2: sample.extra: Extra inputs"),
        ((*WHOLE[:2], line(SAMPLE | {"elapsed": 0})), "agent record 2: sample.elapsed: Input should be greater than 0"),
        ((*WHOLE[:2], line(SAMPLE | {"work": 1 << 70})), "agent record 2: sample.work"),
        ((*WHOLE[:2], line(SAMPLE | {"elapsed": "5"})), "agent record 2: sample.elapsed"),
        ((WHOLE[0], WHOLE[2]), "agent record 1: a sample of lat_x, which was not declared"),
        ((*WHOLE[:3], WHOLE[2]), "agent record 3: lat_x iteration 0 comes twice"),
        ((*WHOLE[:2], WHOLE[3]), "agent record 2: the agent counted 3 records, 2 came"),
        ((*WHOLE, WHOLE[2]), "agent record 4 comes after the end"),
        ((WHOLE[1],), "agent record 0: the stream must start with one hello"),
        ((WHOLE[0], WHOLE[0]), "agent record 1: the stream must start with one hello"),
        ((WHOLE[0], b"x" * (LONGEST_LINE + 5) + b"\n"), f"agent record 1 is longer than {LONGEST_LINE} bytes"),
        ((WHOLE[0], line({"v": 1, "type": "surprise"})), "agent record 1: the record: Input tag 'surprise'"),
    ],
)
def test_an_unsound_stream_is_read_up_to_its_first_fault_which_is_named(
    tmp_path: Path, lines: tuple[bytes, ...], fault: str
) -> None:
    report = read_stream(stream(tmp_path, *lines))
    assert not report.complete
    assert report.fault is not None
    assert report.fault.startswith(fault)
