"""Reads a package for pacman of unknown origin, without unpacking it: a tar archive with .PKGINFO before the files."""

from __future__ import annotations

import re
from typing import IO

from kdyno.ship.package_content import (
    MOST_DATA,
    PIECE,
    FileCollector,
    PackageContent,
    PackedPart,
    take_entry,
    tar_entries,
)

INFO = ".PKGINFO"
XZ = b"\xfd7zXZ\x00"
ZSTD = b"\x28\xb5\x2f\xfd"
"""What other packages for pacman begin with."""
FIELD = re.compile(r"(pkgname|pkgver|arch) = ([A-Za-z0-9@._+:~-]{1,200})")


def read_pacman(file: IO[bytes], size: int, sha256: str) -> PackageContent:
    """Read a package of `size` bytes. Raise ValueError, or the errors of tarfile and lzma."""
    fields: dict[str, str] = {}
    collector = FileCollector()
    for archive, entry in tar_entries(PackedPart(file, size, "xz", MOST_DATA)):
        if entry.name == INFO:
            if fields or not entry.isreg() or entry.size > PIECE:
                raise ValueError(f"its {INFO} is odd")
            content = archive.extractfile(entry)
            assert content
            matches = map(FIELD.fullmatch, content.read(entry.size).decode(errors="replace").split("\n"))
            fields = {match[1]: match[2] for match in matches if match}
        else:
            take_entry(collector, archive, entry)
    if len(fields) != 3:
        raise ValueError(f"it has no {INFO} that names a package, version and architecture")
    return collector.content("pacman", fields["pkgname"], fields["pkgver"], fields["arch"], sha256)
