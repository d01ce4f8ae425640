"""The code of a kernel that has started: a vmlinux gets the bytes that a guest's memory has where its code lies."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kdyno.kernel.vmlinux.checks import NotAVmlinux
from kdyno.understand.lab.started_code import with_code_of

HEAD = 64
PROGRAM_HEADER = 56
READABLE, WRITABLE, RUNNABLE = 4, 2, 1
CODE, DATA = b"code of a kernel", b"data of a kernel"


def vmlinux(*segments: tuple[int, int, bytes]) -> bytes:
    """An ELF file with loaded segments: flags, physical address, content."""
    start = HEAD + PROGRAM_HEADER * len(segments)
    headers, content = b"", b""
    for flags, physical, data in segments:
        place = start + len(content)
        headers += struct.pack(
            "<IIQQQQQQ", 1, flags, place, 0xFFFFFFFF80000000 + physical, physical, len(data), len(data), 1
        )
        content += data
    head = b"\x7fELF\x02\x01" + bytes(26) + struct.pack("<Q", HEAD) + bytes(14)
    return head + struct.pack("<HH", PROGRAM_HEADER, len(segments)) + bytes(6) + headers + content


def memory(tmp_path: Path, size: int, **content: bytes) -> Path:
    """A guest's memory with bytes at addresses, which are named `at_256`."""
    data = bytearray(size)
    for name, these in content.items():
        place = int(name.removeprefix("at_"))
        data[place : place + len(these)] = these
    path = tmp_path / "memory"
    path.write_bytes(data)
    return path


def test_code_is_that_of_the_memory_and_data_that_of_the_file(tmp_path: Path) -> None:
    file = vmlinux((READABLE | RUNNABLE, 256, CODE), (READABLE | WRITABLE, 512, DATA))
    started, changed, size = with_code_of(
        file, tmp_path / "vmlinux", memory(tmp_path, 1024, at_256=b"Code of a Kernel", at_512=b"other data, used")
    )
    assert b"Code of a Kernel" in started and DATA in started
    assert (len(started), changed, size) == (len(file), 2, len(CODE))


def test_code_that_is_also_written_is_not_taken(tmp_path: Path) -> None:
    file = vmlinux((READABLE | WRITABLE | RUNNABLE, 256, CODE))
    assert with_code_of(file, tmp_path / "vmlinux", memory(tmp_path, 1024)) == (file, 0, 0)


@pytest.mark.parametrize(("size", "differing"), [(264, 8), (128, 16)])
def test_code_beyond_the_end_of_the_memory_differs(size: int, differing: int, tmp_path: Path) -> None:
    there = {"at_256": CODE[: size - 256]} if size > 256 else {}
    file = vmlinux((READABLE | RUNNABLE, 256, CODE))
    _, changed, whole = with_code_of(file, tmp_path / "vmlinux", memory(tmp_path, size, **there))
    assert (changed, whole) == (differing, len(CODE))


def test_headers_that_are_cut_off_are_no_vmlinux(tmp_path: Path) -> None:
    file = vmlinux((READABLE | RUNNABLE, 256, CODE))[: HEAD + 20]
    with pytest.raises(NotAVmlinux, match="outside of the file"):
        with_code_of(file, tmp_path / "vmlinux", memory(tmp_path, 1024))
