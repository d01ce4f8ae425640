"""The PMU record: a sound one is read as it was written, an unsound one is one clear error each."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kdyno.base.errors import KdynoError
from kdyno.measure.guest import pmu_values
from kdyno.measure.guest.pmu_limits import LONGEST_NAME, MOST
from kdyno.measure.guest.pmu_parts import StackNode
from kdyno.measure.guest.pmu_record import (
    MarkersNeverClosed,
    NoRegions,
    NoSuchRecord,
    NotAPmuRecord,
    OtherPmuRecordVersion,
    PmuRecordCutShort,
    PmuRecordDamaged,
    read_pmu_record,
    with_benchmarks,
)
from kdyno.measure.guest.pmu_values import Values, unzigzag
from tests.unit.pmu_specimen import (
    FUNCTIONS,
    WORK,
    context,
    encode,
    encode_body,
    encoded,
    iteration,
    specimen,
    traced,
    varint,
    varints,
    write,
    zigzag,
)


def header(data: bytes) -> dict[str, Any]:
    return dict(json.loads(data.split(b"\n", 2)[1]))


def error_of(path: Path, data: bytes) -> KdynoError:
    path.write_bytes(data)
    with pytest.raises(KdynoError) as caught:
        read_pmu_record(path)
    return caught.value


def with_body(body: bytes, **changes: Any) -> bytes:
    return encoded(header(encode(specimen())) | {"bytes": len(body)} | changes, body)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = read_pmu_record(write(tmp_path / "r"))
    assert record.functions == FUNCTIONS
    assert record.names == ("instructions", "calls", "privilege_switches")
    assert list(record.regions) == [0, 2]
    null = record.regions[0]
    assert null.iterations[1].tolist() == [[80, 5, 5], [18, 0, 0], [0, 0, 0]]
    assert null.contexts[0].blocks[2].tolist() == (WORK, 3, 6, 8, 20)
    assert null.contexts[0].functions[1].tolist() == [60, 10, 10]
    assert null.stacks[1] == StackNode(1, 2, 0, 70)
    assert encode(record) == encode(specimen())


def test_what_ran_outside_of_regions_is_read_where_the_plugin_has_written_it(tmp_path: Path) -> None:
    assert read_pmu_record(write(tmp_path / "r")).unmeasured is None
    outside = context(blocks=[(WORK, 3, 6, 8, 5), (WORK - 0x40, 1, 0, 2, 7)]).blocks
    record = replace(specimen(), unmeasured=outside)
    unmeasured = read_pmu_record(write(tmp_path / "r", record)).unmeasured
    assert unmeasured is not None and unmeasured.tolist() == [(WORK - 0x40, 1, 0, 2, 7), (WORK, 3, 6, 8, 5)]
    cut = encoded(header(encode(record)) | {"bytes": len(body := encode_body(record)[:-3])}, body)
    assert isinstance(error_of(tmp_path / "cut", cut), PmuRecordDamaged)
    assert isinstance(error_of(tmp_path / "unsaid", with_body(encode_body(record))), PmuRecordDamaged)


def test_a_record_knows_its_benchmarks_by_name_or_by_index() -> None:
    assert specimen().benchmark_name(2) == "lat_pipe.roundtrip"
    assert specimen().benchmark_name(3) == "#3"


def test_names_of_benchmarks_are_written_into_a_record_and_nothing_else_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "r", benchmarks=())
    assert read_pmu_record(path).benchmarks == ()
    with_benchmarks(path, ["a.b", "c"], path)
    named = read_pmu_record(path)
    assert named.benchmarks == ("a.b", "c")
    assert encode(named) == encode(read_pmu_record(write(tmp_path / "s", benchmarks=("a.b", "c"))))
    assert [entry.name for entry in tmp_path.iterdir()] == ["r", "s"] or len(list(tmp_path.iterdir())) == 2


def test_a_record_cut_short_anywhere_is_cut_short(tmp_path: Path) -> None:
    whole = encode(specimen())
    for size in range(len(whole)):
        error = error_of(tmp_path / "r", whole[:size])
        assert type(error) is PmuRecordCutShort
        assert str(error) == f"the PMU record {tmp_path / 'r'} is cut short after {size} bytes"


def test_a_body_that_ends_before_its_length_is_cut_short(tmp_path: Path) -> None:
    body = encode_body(specimen())
    assert type(error_of(tmp_path / "r", with_body(body, bytes=len(body) + 1))) is PmuRecordCutShort


def test_a_record_with_one_byte_changed_is_never_more_than_a_clear_error(tmp_path: Path) -> None:
    whole = encode(specimen())
    path = tmp_path / "r"
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            read_pmu_record(path)
        except KdynoError as error:
            assert error.advice


def test_a_body_with_one_byte_changed_is_never_more_than_a_clear_error(tmp_path: Path) -> None:
    body = encode_body(specimen())
    path = tmp_path / "r"
    for place in range(len(body)):
        path.write_bytes(with_body(body[:place] + bytes([body[place] ^ 0xFF]) + body[place + 1 :]))
        try:
            read_pmu_record(path)
        except PmuRecordDamaged as error:
            assert "is damaged" in str(error)


@pytest.mark.parametrize("data", [b"\x00\x02\x01", b"kdyno-pmu x\n{}\n", b"kdyno-pmu 11111111111111111111111\n"])
def test_another_file_is_not_a_record(tmp_path: Path, data: bytes) -> None:
    assert type(error_of(tmp_path / "r", data)) is NotAPmuRecord


def test_a_record_of_another_version_says_which(tmp_path: Path) -> None:
    error = error_of(tmp_path / "r", encode(specimen()).replace(b"kdyno-pmu 2", b"kdyno-pmu 3", 1))
    assert type(error) is OtherPmuRecordVersion
    assert "of version 3, but this kdyno reads version 2" in str(error)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(NoSuchRecord, match="No such file"):
        read_pmu_record(tmp_path / "none")


def test_a_record_of_a_guest_without_markers_has_no_regions(tmp_path: Path) -> None:
    path = write(tmp_path / "r", regions={}, opened=0)
    with pytest.raises(NoRegions, match="the guest executed no markers"):
        read_pmu_record(path)
    record = read_pmu_record(path, needs_regions=False)
    assert record.regions == {} and record.names == specimen().names


@pytest.mark.parametrize(("benchmarks", "named"), [((), "3"), (("a", "b", "c", "d.e"), "d.e")])
def test_markers_that_were_never_closed_are_named(tmp_path: Path, benchmarks: tuple[str, ...], named: str) -> None:
    path = write(tmp_path / "r", unclosed=(3, 4), benchmarks=benchmarks)
    with pytest.raises(MarkersNeverClosed, match=f"benchmark {named}, iteration 4, was never closed"):
        read_pmu_record(path)


def test_a_record_with_something_after_its_end_is_damaged(tmp_path: Path) -> None:
    assert type(error_of(tmp_path / "r", encode(specimen()) + b"x")) is PmuRecordDamaged
    assert "numbers follow its end" in str(error_of(tmp_path / "r", with_body(encode_body(specimen()) + b"\0")))
    assert "end that its header gives" in str(error_of(tmp_path / "r", with_body(encode_body(specimen()), bytes=9)))


def test_a_body_that_would_inflate_without_end_is_not_inflated(tmp_path: Path) -> None:
    bomb = encoded(header(encode(specimen())), bytes(50_000_000))
    assert "end that its header gives" in str(error_of(tmp_path / "r", bomb))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bytes": MOST["body_bytes"] + 1}, "bytes:"),
        ({"bytes": "9"}, "bytes:"),
        ({"image": "xyz"}, "image:"),
        ({"scope": "moon"}, "scope:"),
        ({"opened": -1}, "opened:"),
        ({"event_names": ["instructions", "instructions"]}, "event_names:"),
        ({"event_names": ["calls"]}, "event_names:"),
        ({"event_names": ["\x1b[2J"]}, "event_names.0:"),
        ({"benchmarks": ["<script>"]}, "benchmarks.0:"),
        ({"gave_up": {"of": "regions", "most": -1}}, "gave_up.most:"),
        ({"gave_up": "regions"}, "gave_up:"),
    ],
)
def test_a_header_is_checked_key_by_key(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    error = error_of(tmp_path / "r", with_body(encode_body(specimen()), **changes))
    assert type(error) is PmuRecordDamaged
    assert message in str(error)


def test_keys_that_are_not_known_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(with_body(encode_body(specimen()), guest="x"))
    assert read_pmu_record(tmp_path / "r").opened == 3


@pytest.mark.parametrize(("value", "message"), [("9" * 5000, "1"), ("[" * 100_000, "recursion limit exceeded")])
def test_a_header_that_no_reader_of_json_likes_is_never_more_than_a_clear_error(
    tmp_path: Path, value: str, message: str
) -> None:
    before, line, body = encode(specimen()).split(b"\n", 2)
    (tmp_path / "r").write_bytes(before + b"\n" + line[:-1] + b', "guest": ' + value.encode() + b"}\n" + body)
    for read in (read_pmu_record, lambda path: with_benchmarks(path, ["a"], path)):
        try:
            read(tmp_path / "r")
        except PmuRecordDamaged as error:
            assert message in str(error)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (varints([1 << 40]), "longer than the body"),
        (varints([MOST["functions"] + 1] + [0] * 200_000), "more than 65,536 functions"),
        (varints([1, 0, 0, 1 << 40]), "a name is longer than 1024 bytes"),
        (varints([1, 0, 0, LONGEST_NAME]), "within a name"),
        (b"\xff" * 20, "exceeds 64 bits"),
        (varints([0, 1 << 40]), "longer than the body"),
        (varints([0, 1, 0, 1 << 62]), "longer than the body"),
        (varints([0, 1, 1 << 40]), "out of range"),
        (varints([0]), "end too early"),
        (varints([0, 0]) + b"\x80", "numbers follow its end"),
        (varints([0, 1, 0, 1]) + bytes(9) + b"\x80", "end too early"),
        (varints([0, 1, 0, 1]) + b"\xff" * 10 + b"\x01" * 9, "exceeds 64 bits"),
        (varints([0, 1, 0, 1]) + b"\xff" * 9 + b"\x02" + b"\x01" * 9, "exceeds 64 bits"),
        (varints([0, 1, 0, 0] + [0] * 9 + [1, 0, 1, 9, 0]), "function 1 is out of range"),
        (varints([0, 1, 0, 0, 0, 1, 0, 0, 6, 1, 0] + [0] * 7), "kind of branch 6 is out of range"),
        (varints([0, 1, 0, 0, 1, 0, 1 << 32, 0, 0, 1] + [0] * 9), f"instructions {1 << 32} is out of range"),
        (varints([0, 2] + ([5, 0] + [0] * 10) * 2), "regions are not in order"),
        (varints([0, 1, 0, 2] + ([3] + [0] * 9) * 2 + [0] * 10), "iterations are not in order"),
        (varints([1, 0, 0, 0, 1, 0, 0] + [0] * 9 + [1, 1, 0, 0, 1]), "before its parent"),
        (varints([1, 0, 0, 0, 1, 0, 0, 0, 0, 2] + [0] * 8 + [0] * 7), "a function comes twice"),
        (
            varints([1, 0, 0, 0, 1, 0, 0] + [0] * 9 + [5000] + [n for i in range(5000) for n in (i, 0, 0, 1)]),
            "deeper than",
        ),
    ],
)
def test_lengths_and_indices_are_checked_before_they_are_used(tmp_path: Path, body: bytes, why: str) -> None:
    error = error_of(tmp_path / "r", with_body(body))
    assert type(error) is PmuRecordDamaged
    assert why in str(error)


def test_numbers_of_all_lengths_are_decoded() -> None:
    numbers = [value for bits in range(64) for value in ((1 << bits) - 1, 1 << bits)] + [2**64 - 1]
    assert len(varint(2**64 - 1)) == 10
    values = Values(varints([*numbers, 5]))
    assert [values.number(1 << 64) for _ in numbers] == numbers
    values.place = 0
    assert values.rows(len(numbers), 1)[:, 0].tolist() == numbers
    assert values.number(6) == 5
    values.expect_end()
    assert values.rows(0, 7).shape == (0, 7)


@pytest.mark.parametrize("at_once", range(10, 25))
def test_numbers_are_decoded_alike_wherever_they_are_cut(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(pmu_values, "DECODED_AT_ONCE", at_once)
    numbers = [1 << bit for bit in range(64)]
    assert Values(varints(numbers)).rows(16, 4).flatten().tolist() == numbers


def test_differences_may_be_negative_and_wrap() -> None:
    numbers = [0, -1, 1, -2, 2**62, -(2**62), -(2**63), 2**63 - 1]
    back = unzigzag(np.array([zigzag(number) for number in numbers], np.uint64))
    assert back.astype(np.int64).tolist() == numbers


def test_code_of_user_programs_and_of_the_kernel_may_be_in_one_record(tmp_path: Path) -> None:
    region = specimen().regions[2]
    blocks = [(0x400000, 1, 0, 3, 1), (WORK, 3, 6, 8, 4)]
    mixed = type(region)(2, {0: iteration((0,) * 3, (0,) * 3, (0,) * 3)}, (context(blocks), context(), context()), ())
    record = read_pmu_record(write(tmp_path / "r", regions={2: mixed}))
    assert record.regions[2].contexts[0].blocks["start"].tolist() == [0x400000, WORK]


def test_the_adler_checksum_guards_the_body(tmp_path: Path) -> None:
    whole = encode(specimen())
    assert "doesn't inflate" in str(error_of(tmp_path / "r", whole[:-1] + bytes([whole[-1] ^ 1])))
    assert zlib.decompress(whole.split(b"\n", 2)[2]) == encode_body(specimen())


def test_the_sequence_of_blocks_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = read_pmu_record(write(tmp_path / "r", traced()))
    trace, written = record.regions[0].trace, traced().regions[0].trace
    assert trace and written and record.regions[2].trace
    assert trace.blocks.tolist() == written.blocks.tolist()
    assert (trace.steps.tolist(), trace.left_out) == ([3, 5, 6, 8], 7)


def test_a_step_to_a_block_that_is_not_there_is_damage(tmp_path: Path) -> None:
    record = traced()
    trace = record.regions[2].trace
    assert trace
    regions = record.regions | {2: replace(record.regions[2], trace=replace(trace, steps=trace.steps + np.uint64(4)))}
    with pytest.raises(PmuRecordDamaged, match="block of a trace 3 is out of range"):
        read_pmu_record(write(tmp_path / "r", replace(record, regions=regions)))
