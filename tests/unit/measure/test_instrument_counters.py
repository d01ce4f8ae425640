"""Snapshots of an instrumented kernel's counters, as a guest sends them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdyno.measure.guest.counters import CountersUnsound, read_snapshots


def item(snapshot: int, after: str, name: str, content: bytes) -> bytes:
    line = {"v": 1, "snapshot": snapshot, "after": after, "name": name, "bytes": len(content)}
    return json.dumps(line).encode() + b"\n" + content


def end(snapshots: int) -> bytes:
    return json.dumps({"v": 1, "snapshots": snapshots}).encode() + b"\n"


WHOLE = (
    item(0, "", "a.gcda", b"a0\n")
    + item(0, "", "b.gcda", b"b0")
    + item(1, "", "a.gcda", b"a1")
    + item(3, "lat_pipe", "b.gcda", b"b3")
    + end(4)
)


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "counters.bin"
    path.write_bytes(content)
    return path


def test_what_did_not_change_is_taken_from_the_snapshot_before(tmp_path: Path) -> None:
    snapshots = read_snapshots(written(tmp_path, WHOLE))
    assert snapshots.items == {"a.gcda": (b"a0\n", b"a1", b"a1", b"a1"), "b.gcda": (b"b0", b"b0", b"b0", b"b3")}


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_a_file_that_was_cut_short_is_refused(tmp_path: Path, length: int) -> None:
    with pytest.raises(CountersUnsound):
        read_snapshots(written(tmp_path, WHOLE[:length]))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (item(0, "", "a", b"x") + end(2) + b"more", "its last line"),
        (item(0, "", "a", b"x") + item(0, "", "a", b"y") + end(2), "twice in one"),
        (item(0, "", "a", b"x") + item(2, "t", "b", b"y") + end(3), "not in the first snapshot"),
        (item(1, "", "a", b"x") + end(2), "not in the first snapshot"),
        (item(0, "", "a", b"x") + item(2, "t", "a", b"y") + item(1, "", "a", b"z") + end(3), "out of order"),
        (item(0, "", "a", b"x") + item(5, "t", "a", b"y") + end(3), "its last line"),
        (end(2), "its last line"),
        (b'{"v":1,"snapshot":0,"after":"","name":"a","bytes":99999999999}\n', "a line of it"),
        (b'{"v":1,"snapshots":99999}\n', "a line of it"),
        (b"".join(item(0, "", str(number), b"") for number in range(20_001)) + end(2), "more than 20,000 items"),
        (b"rubbish\n", "a line of it"),
    ],
)
def test_what_no_agent_sends_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    with pytest.raises(CountersUnsound, match=why):
        read_snapshots(written(tmp_path, content))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CountersUnsound, match="nothing"):
        read_snapshots(tmp_path / "nothing")


@given(st.binary(max_size=300), st.integers(0, len(WHOLE)))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int) -> None:
    path = tmp_path_factory.mktemp("noise") / "counters.bin"
    path.write_bytes(WHOLE[:place] + noise + WHOLE[place:])
    try:
        read_snapshots(path)
    except CountersUnsound as error:
        assert str(error)
