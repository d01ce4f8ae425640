"""The vmlinux that a record was made with: whether it is the one, where it is loaded, whether it has line tables."""

from __future__ import annotations

import struct
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.state import State
from kdyno.kernel.images import ImageCorrupt, content_digest, image_in, read_record
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.elf_sections import MOST_BYTES

PT_LOAD = 1
PF_X = 1


class OtherVmlinux(UserError):
    message = "vmlinux {vmlinux} is not the one that ran: record {record} was made with {ran}, {vmlinux} is {given}"
    hint = "name the vmlinux of the image that was recorded, or record this one"


class RecordOfNoImage(UserError):
    message = "record {record} doesn't say which vmlinux ran"
    hint = "only records of a kernel do: `kdyno profile record` makes one"


class NotAVmlinux(UserError):
    message = "{vmlinux} is not a vmlinux: {why}"
    hint = "it is the ELF file at the top of a kernel's build directory, or in the directory of an image"


class NoLineTables(UserError):
    message = "vmlinux {vmlinux} has no line tables, which lead from code to its source"
    hint = "lines = true in the recipe, then build and record that kernel"


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


def recorded_vmlinux(record: PmuRecord, path: Path, named: Path | None, state: State) -> Path | None:
    """The vmlinux that ran: the named one, else that of an image of kdyno's; None if there is none.

    Raises OtherVmlinux, RecordOfNoImage and NotAVmlinux of one that was named.
    """
    if named:
        require_same(record, path, named)
        return named
    for place in sorted(state.images.glob("*/")):
        try:
            if record.image is not None and read_record(place).files.get("vmlinux") == record.image:
                return image_in(place, state).vmlinux
        except ImageCorrupt:  # then it is of no use here either
            continue
    return None


def load_address(vmlinux: Path) -> int:
    """Address of the first loaded segment; raises NotAVmlinux."""
    data = vmlinux_bytes(vmlinux)
    offset, size, number = struct.unpack_from("<32xQ14xHH", data)[:3]
    for header in range(offset, offset + size * number, size or 1):
        kind, address = _unpacked("<I12xQ", data, header, vmlinux)
        if kind == PT_LOAD:
            return address
    raise NotAVmlinux(vmlinux=vmlinux, why="it has nothing to load")


def occurrences(vmlinux: Path, code: bytes) -> list[int]:
    """Where these bytes are in executable segments: addresses, ascending. Raises NotAVmlinux."""
    data = vmlinux_bytes(vmlinux)
    offset, size, number = struct.unpack_from("<32xQ14xHH", data)[:3]
    addresses = []
    for header in range(offset, offset + size * number, size or 1):
        kind, flags, start, address, length = _unpacked("<IIQQ8xQ", data, header, vmlinux)
        if kind != PT_LOAD or not flags & PF_X:
            continue
        place = data.find(code, start, start + length)
        while place >= 0:
            addresses.append(address + place - start)
            place = data.find(code, place + 1, start + length)
    return sorted(addresses)


def require_line_tables(vmlinux: Path) -> None:
    """Raise NoLineTables unless there is a section .debug_line."""
    data = vmlinux_bytes(vmlinux)
    offset, size, number, names = struct.unpack_from("<40xQ10xHHH", data)
    (text,) = _unpacked("<24xQ", data, offset + size * names, vmlinux)
    for header in range(offset, offset + size * number, size or 1):
        (name,) = _unpacked("<I", data, header, vmlinux)
        if data.startswith(b".debug_line\0", text + name):
            return
    raise NoLineTables(vmlinux=vmlinux)


def vmlinux_bytes(vmlinux: Path) -> bytes:
    """The whole file; raises NotAVmlinux unless it is a 64-bit ELF file."""
    try:
        data = read_whole(vmlinux, MOST_BYTES)
    except OSError as error:
        raise NotAVmlinux(vmlinux=vmlinux, why=error.strerror) from error
    if data[:6] != b"\x7fELF\x02\x01" or len(data) < 64:
        raise NotAVmlinux(vmlinux=vmlinux, why="it is not a 64-bit ELF file")
    return data


def _unpacked(form: str, data: bytes, offset: int, vmlinux: Path) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, data, offset)
    except (struct.error, OverflowError):
        raise NotAVmlinux(vmlinux=vmlinux, why="its headers point outside of it") from None
