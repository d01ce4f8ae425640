"""A vmlinux of any size, and what is no file, ends in one message within a gigabyte of memory."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from tests.unit.bounded import python
from tests.unit.ir_specimen import build

READ = """
import sys
from pathlib import Path
from kdyno.base.errors import KdynoError
from kdyno.kernel.vmlinux import checks
from kdyno.profile import ir_profile
try:
    {}(Path(sys.argv[1]))
except KdynoError as error:
    print(error)
"""
READERS = ["checks.load_address", "checks.require_line_tables", "ir_profile.counted_functions"]


def with_a_hole(path: Path, size: int) -> Path:
    """A sound ELF file that goes on and takes up nothing."""
    build(path.parent).rename(path)
    os.truncate(path, size)
    return path


@pytest.mark.parametrize("reader", [*READERS, "ir_profile.counters_range"])
def test_a_vmlinux_that_is_larger_than_any_is_refused(tmp_path: Path, reader: str) -> None:
    path = with_a_hole(tmp_path / "vmlinux", 1 << 33)
    done = python(READ.format(reader), path)
    assert done.returncode == 0 and "it is larger than 600,000,000 bytes" in done.stdout, done.stderr[-2000:]


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_in_its_place_keeps_nobody_waiting(tmp_path: Path, reader: str) -> None:
    os.mkfifo(tmp_path / "vmlinux")
    assert "it is not a regular file" in python(READ.format(reader), tmp_path / "vmlinux").stdout


def test_the_largest_that_is_read_fits_with_all_of_its_sections(tmp_path: Path) -> None:
    path = with_a_hole(tmp_path / "vmlinux", 600_000_000)
    data = bytearray(path.read_bytes()[: 1 << 20])
    offset, size, number = struct.unpack_from("<40xQ10xHH", data)
    for header in range(offset, offset + size * number, size):
        struct.pack_into("<Q", data, header + 32, 500_000_000)
    with path.open("r+b") as file:
        file.write(data)
    done = python(READ.format("ir_profile.counted_functions"), path)
    assert done.returncode == 0 and "more than 48,000,000 bytes" in done.stdout, done.stderr[-2000:]
