"""Checks of the vmlinux of a record: its identity, its load address, its line tables."""

from __future__ import annotations

import struct
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.state import State
from kdyno.kernel.images import ImageCorrupt, content_digest, image_in, read_record
from kdyno.kernel.vmlinux.elf_sections import MOST_BYTES
from kdyno.kernel.vmlinux.segments import Segment
from kdyno.kernel.vmlinux.segments import segments as read_segments
from kdyno.measure.guest.pmu_record import PmuRecord

PF_X, PF_W = 1, 2
CUT_OFF = "its headers point outside of the file"


class OtherVmlinux(UserError):
    message = "{vmlinux} is not the vmlinux that ran: record {record} was made with {ran}, {vmlinux} is {given}"
    hint = "name the vmlinux of the recorded image, or record this one"


class RecordOfNoImage(UserError):
    message = "record {record} does not identify the vmlinux that ran"
    hint = "make a record of a kernel with `kdyno profile record`"


class NotAVmlinux(UserError):
    message = "{vmlinux} is not a vmlinux: {why}"
    hint = "name the file vmlinux at the top of a kernel's build directory, or in the directory of an image"


class NoLineTables(UserError):
    message = "vmlinux {vmlinux} has no line tables, which map code to its source"
    hint = "set lines = true in the recipe, then build and record that kernel"


def require_same(record: PmuRecord, path: Path, vmlinux: Path) -> None:
    """Raise OtherVmlinux unless `vmlinux` is the one that the record at `path` was made with."""
    if record.image is None:
        raise RecordOfNoImage(record=path)
    try:
        digest = content_digest(vmlinux)
    except OSError as error:
        raise NotAVmlinux(vmlinux=vmlinux, why=error.strerror) from error
    if digest != record.image:
        raise OtherVmlinux(vmlinux=vmlinux, record=path, ran=record.image[:12], given=digest[:12])


def find_recorded_vmlinux(record: PmuRecord, path: Path, named: Path | None, state: State) -> Path | None:
    """Return the vmlinux that ran: the named one, else that of an image of kdyno; None if not found.

    Raises OtherVmlinux, RecordOfNoImage and NotAVmlinux for a named vmlinux.
    """
    if named:
        require_same(record, path, named)
        return named
    for place in sorted(state.images.glob("*/")):
        try:
            if record.image is not None and read_record(place).files.get("vmlinux") == record.image:
                return image_in(place, state).vmlinux
        except ImageCorrupt:  # then its vmlinux can't be used either
            continue
    return None


def load_address(vmlinux: Path) -> int:
    """Return the address of the first loaded segment. Raises NotAVmlinux."""
    for segment in segments(vmlinux_bytes(vmlinux), vmlinux):
        return segment.address
    raise NotAVmlinux(vmlinux=vmlinux, why="it has no loaded segment")


def occurrences(vmlinux: Path, code: bytes) -> list[int]:
    """Return the ascending addresses of these bytes in executable segments. Raises NotAVmlinux."""
    data = vmlinux_bytes(vmlinux)
    addresses = []
    for flags, start, address, _, size in segments(data, vmlinux):
        place = data.find(code, start, start + size) if flags & PF_X else -1
        while place >= 0:
            addresses.append(address + place - start)
            place = data.find(code, place + 1, start + size)
    return sorted(addresses)


def require_line_tables(vmlinux: Path) -> None:
    """Raise NoLineTables unless there is a section .debug_line."""
    if section_addresses(vmlinux_bytes(vmlinux), ".debug_line", vmlinux) is None:
        raise NoLineTables(vmlinux=vmlinux)


def segments(data: bytes, vmlinux: Path) -> list[Segment]:
    """Return the loaded segments, in the order of their headers. Raises NotAVmlinux."""
    try:
        return read_segments(data)
    except (struct.error, OverflowError):
        raise NotAVmlinux(vmlinux=vmlinux, why=CUT_OFF) from None


def section_addresses(data: bytes, name: str, vmlinux: Path) -> range | None:
    """Return the addresses of the first section of this name; None if there is none. Raises NotAVmlinux."""
    offset, size, number, names = struct.unpack_from("<40xQ10xHHH", data)
    (labels,) = _unpack("<24xQ", data, offset + size * names, vmlinux)
    for header in range(offset, offset + size * number, size or 1):
        label, start, length = _unpack("<I12xQ8xQ", data, header, vmlinux)
        if data.startswith(name.encode() + b"\0", labels + label):
            return range(start, start + length)
    return None


def vmlinux_bytes(vmlinux: Path) -> bytes:
    """Return the content of the file. Raises NotAVmlinux unless it is a 64-bit ELF file."""
    try:
        data = read_whole(vmlinux, MOST_BYTES)
    except OSError as error:
        raise NotAVmlinux(vmlinux=vmlinux, why=error.strerror) from error
    if data[:6] != b"\x7fELF\x02\x01" or len(data) < 64:
        raise NotAVmlinux(vmlinux=vmlinux, why="it is not a 64-bit ELF file")
    return data


def _unpack(form: str, data: bytes, offset: int, vmlinux: Path) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, data, offset)
    except (struct.error, OverflowError):
        raise NotAVmlinux(vmlinux=vmlinux, why=CUT_OFF) from None
