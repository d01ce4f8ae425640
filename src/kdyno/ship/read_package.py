"""Reads a package of unknown origin, of the kind that its first bytes say. Nothing of it is unpacked or run."""

from __future__ import annotations

import hashlib
import lzma
import os
import struct
import tarfile
import zlib
from pathlib import Path
from typing import IO

from kdyno.base.errors import UserError
from kdyno.base.files import open_regular
from kdyno.ship import read_deb, read_pacman, read_rpm
from kdyno.ship.package_content import PackageContent

MOST_PACKAGE = 4_000_000_000
"""Bytes of a package."""
BEGINNINGS = (read_deb.AR, read_rpm.LEAD, read_pacman.XZ, read_pacman.ZSTD)


class PackageUnreadable(UserError):
    message = "{path} is not a package that kdyno can read: {why}"
    hint = "name a package that `kdyno ship` wrote, and compare its checksum with that of its origin"


def is_package(first_bytes: bytes) -> bool:
    """Return whether a file that begins so is a package, of a kind that kdyno reads or of a similar one."""
    return first_bytes.startswith(BEGINNINGS)


def read_package(path: Path) -> PackageContent:
    """Read a package. Raise PackageUnreadable."""
    try:
        with open_regular(path) as file:
            if (size := os.fstat(file.fileno()).st_size) > MOST_PACKAGE:
                raise ValueError(f"it has more than {MOST_PACKAGE:,} bytes")
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            return _read(file, size, sha256)
    except OSError as error:
        raise PackageUnreadable(path=path, why=error.strerror or str(error)) from None
    except (ValueError, EOFError, tarfile.TarError, lzma.LZMAError, zlib.error, struct.error) as error:
        raise PackageUnreadable(path=path, why=str(error) or "it is damaged") from None


def _read(file: IO[bytes], size: int, sha256: str) -> PackageContent:
    first_bytes = file.read(max(map(len, BEGINNINGS)))
    file.seek(0)
    if first_bytes.startswith(read_deb.AR):
        return read_deb.read_deb(file, sha256)
    if first_bytes.startswith(read_rpm.LEAD):
        return read_rpm.read_rpm(file, size, sha256)
    if first_bytes.startswith(read_pacman.XZ):
        return read_pacman.read_pacman(file, size, sha256)
    if first_bytes.startswith(read_pacman.ZSTD):
        raise ValueError("it is packed by zstd, and kdyno's packages by xz")
    raise ValueError("it begins like no package for dpkg, rpm or pacman")
