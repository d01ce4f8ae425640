"""Reads a Debian package of unknown origin, without unpacking it: an ar archive of two tar archives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from kdyno.ship.package_content import (
    DECOMPRESSORS,
    MOST_CONTROL,
    MOST_DATA,
    PIECE,
    FileCollector,
    PackageContent,
    PackedPart,
    take_entry,
    tar_entries,
)

AR, MEMBER, MEMBER_END = b"!<arch>\n", 60, b"`\n"
FIELD = re.compile(r"(Package|Version|Architecture): ([A-Za-z0-9.+~:-]{1,200})")


def read_deb(file: IO[bytes], sha256: str) -> PackageContent:
    """Read a package. Raise ValueError, or the errors of tarfile, lzma and zlib."""
    if file.read(len(AR)) != AR:
        raise ValueError("it is not an ar archive")
    fields: dict[str, str] = {}
    collector = FileCollector()
    parts = []
    for name, start, size in _members(file):
        file.seek(start)
        stem, _, packing = name.rpartition(".")
        parts.append(stem or name)
        if stem in ("control.tar", "data.tar") and packing not in DECOMPRESSORS:
            raise ValueError(
                f"{name} is packed in another way than kdyno's packages, which have {'/'.join(DECOMPRESSORS)}"
            )
        if stem == "control.tar":
            fields = _fields(PackedPart(file, size, packing, MOST_CONTROL))
        elif stem == "data.tar":
            for archive, entry in tar_entries(PackedPart(file, size, packing, MOST_DATA)):
                take_entry(collector, archive, entry)
    if parts != ["debian-binary", "control.tar", "data.tar"]:
        raise ValueError("its parts are not debian-binary, control.tar and data.tar")
    return collector.content("deb", fields["Package"], fields["Version"], fields["Architecture"], sha256)


def _members(file: IO[bytes]) -> Iterator[tuple[str, int, int]]:
    """Yield the name, place and size of each member of the ar archive."""
    at = len(AR)
    while True:
        file.seek(at)
        head = file.read(MEMBER)
        if not head:
            return
        if len(head) != MEMBER or head[58:] != MEMBER_END or not head[48:58].strip().isdigit():
            raise ValueError("its ar archive is damaged")
        size = int(head[48:58])
        yield head[:16].decode("ascii", errors="replace").strip().rstrip("/"), at + MEMBER, size
        at += MEMBER + size + size % 2


def _fields(part: PackedPart) -> dict[str, str]:
    text = None
    for archive, entry in tar_entries(part):
        if entry.name in ("./control", "control"):
            if text is not None or not entry.isreg() or entry.size > PIECE:
                raise ValueError("its control file is odd")
            content = archive.extractfile(entry)
            assert content
            text = content.read(entry.size).decode(errors="replace")
    matches = (FIELD.fullmatch(line) for line in (text or "").split("\n"))
    fields = {match[1]: match[2] for match in matches if match}
    if len(fields) != 3:
        raise ValueError("its control file names no package, version and architecture")
    return fields
