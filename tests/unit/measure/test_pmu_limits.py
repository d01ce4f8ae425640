"""Attacks on the emulated PMU: guests that make the plugin keep ever more, and records that would fill the memory."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kdyno.base.errors import KdynoError
from kdyno.measure.cycles.family import load_family
from kdyno.measure.cycles.measure import QEMU_USER
from kdyno.measure.guest.pmu import find_plugin
from kdyno.measure.guest.pmu_limits import LONGEST_NAME, MOST
from kdyno.measure.guest.pmu_record import PluginGaveUp, PmuRecordDamaged, read_pmu_record
from tests.unit.pmu_specimen import encode, encoded, specimen, varint, varints

MEGABYTE = 1_000_000
HEADER = json.loads(encode(specimen()).split(b"\n", 2)[1])


def peak_of_reading(
    path: Path, body: bytes, events: Sequence[str] = ("instructions",), *, is_traced: bool = False
) -> tuple[float, KdynoError | None]:
    """Megabytes that reading a record takes at most, and how it ended."""
    counted = {"bytes": len(body), "event_names": list(events), "events": "trace" if is_traced else "edges"}
    path.write_bytes(encoded(HEADER | counted, body))
    tracemalloc.start()
    try:
        read_pmu_record(path)
    except KdynoError as error:
        return tracemalloc.get_traced_memory()[1] / MEGABYTE, error
    finally:
        tracemalloc.stop()
    return tracemalloc.get_traced_memory()[1] / MEGABYTE, None


def region(*, iterations: bytes = b"\0", executed: Sequence[bytes] = (b"\0\0\0",) * 3, nodes: bytes = b"\0") -> bytes:
    """The body of a record with one function and one region."""
    return varints([1, 0, 0, 0, 1, 0]) + iterations + b"".join(executed) + nodes


def times(number: int, row: bytes) -> bytes:
    return varint(number) + row * number


TOO_MANY = {
    "functions": varint(5_000_000) + b"\1\0\0" * 5_000_000 + b"\0",
    "regions": varints([0, 1025]) + b"".join(varint(number) + bytes(11) for number in range(1025)),
    "iterations": region(iterations=times(4_000_000, b"\1\0\0\0")),
    "executed_blocks": region(executed=(times(3_000_000, b"\2\0\0\0\1") + b"\0\0", b"\0\0\0", b"\0\0\0")),
    "executed_branches": region(executed=(b"\0" + times(4_000_000, b"\2\0\0\1") + b"\0", b"\0\0\0", b"\0\0\0")),
    "executed_functions": region(executed=(b"\0\0" + times(8_000_000, b"\1\0"), b"\0\0\0", b"\0\0\0")),
    "stack_nodes": region(nodes=times(4_000_000, b"\0\0\0\1")),
    "stack_depth": region(nodes=varint(5000) + b"".join(varints([node, 0, 0, 1]) for node in range(5000))),
    "trace_blocks": region() + times(3_000_000, b"\2\0\1\2\0"),
    "trace_steps": region() + times(1, b"\2\0\1\2\0") + times(4_000_000, b"\0"),
}


@pytest.mark.parametrize("thing", TOO_MANY)
def test_a_small_record_of_very_many_things_is_refused_before_anything_is_made_of_them(
    tmp_path: Path, thing: str
) -> None:
    megabytes, error = peak_of_reading(tmp_path / "r", TOO_MANY[thing], is_traced=thing.startswith("trace"))
    assert (tmp_path / "r").stat().st_size < 130_000
    assert type(error) is PmuRecordDamaged
    assert ("deeper" if thing == "stack_depth" else f"more than {MOST[thing]:,} {thing.replace('_', ' ')}") in str(
        error
    )
    assert megabytes < 5 * MOST["body_bytes"] / MEGABYTE


def test_a_body_of_more_bytes_than_any_sound_record_has_is_not_inflated(tmp_path: Path) -> None:
    megabytes, error = peak_of_reading(tmp_path / "r", region(nodes=times(64_000_000, b"\0\0\0\1")))
    assert "bytes: it must be" in str(error)
    assert megabytes < 1.2 * MOST["body_bytes"] / MEGABYTE  # the file is read into so much room at first


def test_what_is_just_allowed_takes_a_few_hundred_megabytes_at_most(tmp_path: Path) -> None:
    """A tenth of each, which is quicker, and takes a tenth."""
    tenth = {thing: most // 10 for thing, most in MOST.items()}
    functions = varint(tenth["functions"]) + b"\1\1\1a" * tenth["functions"]
    ran = times(tenth["executed_blocks"], b"\2\1\0\1\1") + times(tenth["executed_branches"], b"\2\2\0\1")
    counted = varint(tenth["functions"]) + b"\0\1" + b"\1\1" * (tenth["functions"] - 1)
    iterations = varint(tenth["iterations"]) + b"".join(
        varints([number, 1 << 60, 1 << 60, 1 << 60]) for number in range(tenth["iterations"])
    )
    nodes = varint(tenth["stack_nodes"]) + b"".join(
        varints([number % 400, number % tenth["functions"], 0, 1 << 20]) for number in range(tenth["stack_nodes"])
    )
    body = functions + varints([1, 0]) + iterations + ran + counted + b"\0\0" + counted + b"\0\0\0" + nodes
    megabytes, error = peak_of_reading(tmp_path / "r", body)
    assert error is None
    assert megabytes < 40


def test_a_file_of_any_size_and_kind_is_read_with_a_limit(tmp_path: Path) -> None:
    with (tmp_path / "r").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(KdynoError, match="larger than"):
        read_pmu_record(tmp_path / "r")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(KdynoError, match="not a regular file"):
        read_pmu_record(tmp_path / "pipe")


def test_names_of_functions_may_be_as_long_as_the_plugin_takes_them_and_no_longer(tmp_path: Path) -> None:
    record = specimen()
    for length, is_read in ((LONGEST_NAME, True), (LONGEST_NAME + 1, False)):
        functions = (*record.functions[:-1], replace(record.functions[-1], name="a" * length))
        (tmp_path / "r").write_bytes(encode(replace(record, functions=functions)))
        if is_read:
            assert read_pmu_record(tmp_path / "r").functions == functions
        else:
            with pytest.raises(PmuRecordDamaged, match="a name is longer than 1024 bytes"):
                read_pmu_record(tmp_path / "r")


def test_a_plugin_that_gave_up_says_what_there_was_too_much_of(tmp_path: Path) -> None:
    gave_up = HEADER | {"bytes": 2, "gave_up": {"of": "user_blocks", "most": 4096}}
    (tmp_path / "r").write_bytes(encoded(gave_up | {"opened": 0}, b"\0\0"))
    with pytest.raises(PluginGaveUp, match=r"the PMU plugin gave up: more than 4,096 user blocks$"):
        read_pmu_record(tmp_path / "r")
    (tmp_path / "r").write_bytes(encoded(gave_up | {"gave_up": {"of": "\x1b[2J", "most": 4096}}, b"\0\0"))
    with pytest.raises(PmuRecordDamaged, match=r"gave_up\.of:"):
        read_pmu_record(tmp_path / "r")


# The plugin, in QEMU, with programs that do what a hostile guest would.


def program(code: bytes) -> bytes:
    """A static ELF program for x86-64; its code begins at 0x400078, and it may write to it."""
    base, size = 0x400000, 120 + len(code)
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, base + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return head + struct.pack("<IIQQQQQQ", 1, 7, 0, base, base, size, size, 4096) + code


OPEN, CLOSE, ONE, ZERO = (bytes((0x66, 0x87, register)) for register in (0xDB, 0xC9, 0xD2, 0xF6))
EXIT = bytes.fromhex("b83c000000 31ff 0f05")  # mov $60,%eax; xor %edi,%edi; syscall
NOP_OF_15_BYTES = bytes.fromhex("666666666666 2e 0f1f8400 00000000")


def rounds(number: int, body: bytes) -> bytes:
    """A program that does this so many times, with the number of the round in %ebx."""
    loop = body + bytes.fromhex("ffc3 81fb") + struct.pack("<I", number)  # inc %ebx; cmp $number,%ebx
    back = struct.pack("<i", -len(loop) - 6)
    return bytes.fromhex("31db") + loop + bytes.fromhex("0f85") + back + EXIT  # xor %ebx,%ebx; ...; jne; exit


NEW_IDENTITIES = (
    bytes.fromhex("89d8 b920000000")  # mov %ebx,%eax; mov $32,%ecx
    + bytes.fromhex("d1e0 7205")  # bit: shl %eax; jc one
    + ZERO
    + bytes.fromhex("eb03")  # jmp next
    + ONE  # one:
    + bytes.fromhex("ffc9 75f0")  # next: dec %ecx; jne bit
    + OPEN
    + CLOSE
)
"""Announces %ebx, bit by bit: another iteration each time, and sometimes another benchmark."""
NEW_CODE = (
    OPEN
    # mov %ebx,3(%rip); jmp to what follows; mov $0,%eax, where the 0 is what was changed.
    + bytes.fromhex("891d03000000 eb00 b800000000")
    + 250 * NOP_OF_15_BYTES
    + CLOSE
)
"""Another block of nearly 4 kB each time."""
CALLS = (
    OPEN
    + bytes.fromhex(
        # again: jmp on; on: add $8,%rsp; inc %ebx; cmp $2000000,%ebx; je out; call again; out: ...
        "e800000000 eb00 4883c408 ffc3 81fb80841e00 7405 e8ebffffff"
    )
    + CLOSE
    + EXIT
)
"""Calls deeper and deeper, which never return."""


MEASURED = """
import resource, subprocess, sys
print(subprocess.run(sys.argv[1:]).returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""A program of its own, since a child's figure is at least what its parent had when it was made."""


def counted(directory: Path, code: bytes) -> tuple[float, KdynoError | None]:
    """Megabytes of QEMU's memory at its most while the plugin counts a program, and how its record is read."""
    if shutil.which(QEMU_USER) is None:
        pytest.skip(f"needs {QEMU_USER}")
    path, record = directory / "program", directory / "record"
    path.write_bytes(program(code))
    path.chmod(0o755)
    options = [find_plugin(), f"out={record}", "scope=user", "events=all", f"geometry={load_family('generic').path}"]
    command = [QEMU_USER, "-plugin", ",".join(map(str, options)), str(path)]
    done = subprocess.run([sys.executable, "-S", "-c", MEASURED, *command], capture_output=True, text=True, check=True)
    if "unknown option 'plugin'" in done.stderr:
        pytest.skip(f"needs a {QEMU_USER} with plugins")
    status, kilobytes = map(int, done.stdout.split())
    assert (status, done.stderr) == (0, "")
    try:
        read_pmu_record(record)
    except KdynoError as error:
        return kilobytes * 1024 / MEGABYTE, error
    return kilobytes * 1024 / MEGABYTE, None


def test_a_guest_that_announces_ever_new_iterations_is_given_up(tmp_path: Path) -> None:
    _, error = counted(tmp_path, rounds(1000, NEW_IDENTITIES))
    assert error is None
    few, error = counted(tmp_path, rounds(70_000, NEW_IDENTITIES))
    assert type(error) is PluginGaveUp and "more than 65,536 iterations" in str(error)
    many, error = counted(tmp_path, rounds(700_000, NEW_IDENTITIES))
    assert type(error) is PluginGaveUp
    assert few < 300 and many < few + 20


def test_a_guest_whose_code_changes_without_end_is_given_up(tmp_path: Path) -> None:
    megabytes, error = counted(tmp_path, rounds(6000, NEW_CODE))
    assert type(error) is PluginGaveUp and "more than 16,777,216 code bytes" in str(error)
    assert megabytes < 300


def test_calls_that_never_return_are_given_up(tmp_path: Path) -> None:
    megabytes, error = counted(tmp_path, CALLS)
    assert type(error) is PluginGaveUp and "more than 4,096 stack depth" in str(error)
    assert megabytes < 100
