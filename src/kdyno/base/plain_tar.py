"""Reading regular files from a stranger's tar archive, one after the other, within limits; and writing them.

Python's tarfile reads far more than kdyno and kdyno-pgod write: links, devices, sparse files, extended headers that may
claim gigabytes of memory. Here an entry is a regular file with a plain name, or it is refused. The format is POSIX's
ustar, and GNU's `L` entry, which holds a name of more than 100 bytes (GNU tar's manual, "Basic Tar Format").
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO

from kdyno.base.errors import InfrastructureError

BLOCK = 512
PIECE = 1 << 20
LONGEST_NAME = 4096
LONGEST_PART = 255
DEEPEST = 100
"""The most parts of a name: code that walks a tree may call itself for each."""
FILE, LONG_NAME = (b"0", b"\0"), b"L"
OCTAL = frozenset(b"01234567")
END = bytes(2 * BLOCK)
"""The end of an archive."""

Read = Callable[[int], bytes]
"""Return up to so many bytes; no bytes only at the end."""


class ArchiveDamaged(InfrastructureError):
    message = "{name} can't be used: {why}"
    hint = "fetch it again from its origin"


@dataclass(frozen=True)
class TarLimits:
    """The limits of one archive."""

    files: int
    file_bytes: int
    total_bytes: int


def entry(name: str, content: bytes) -> bytes:
    """Return the archive entry of one file: the same bytes for the same file. The name has at most 100 bytes."""
    header = tarfile.TarInfo(name)
    header.size = len(content)
    return header.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict") + content + bytes(-len(content) % BLOCK)


def files(
    read: Read, limits: TarLimits, archive: str, damaged: type[ArchiveDamaged] = ArchiveDamaged
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file; `archive` is its name in messages. A file takes no more memory than its
    size.

    A name is relative, has neither empty parts nor `.` or `..`, and occurs once. Raise `damaged`, also if the archive
    ends too early or continues after its end.
    """
    reader = _Reader(read, archive, damaged)
    names: set[str] = set()
    total = 0
    while (entry := reader.entry()) is not None:
        name, size = entry
        total += size
        if name in names:
            raise reader.damaged(f"it holds {name} twice")
        if len(names) >= limits.files:
            raise reader.damaged(f"it holds more than {limits.files:,} files")
        if size > limits.file_bytes or total > limits.total_bytes:
            raise reader.damaged(f"{name} of {size:,} bytes exceeds the limit")
        names.add(name)
        yield name, reader.content(size)


class _Reader:
    def __init__(self, read: Read, archive: str, damaged: type[ArchiveDamaged]) -> None:
        self._read = read
        self._archive = archive
        self._damaged = damaged

    def damaged(self, why: str) -> ArchiveDamaged:
        return self._damaged(name=self._archive, why=why)

    def entry(self) -> tuple[str, int] | None:
        """Return the name and size of the next file; None at the end."""
        header = self._exactly(BLOCK)
        if not any(header):
            if any(self._exactly(BLOCK)) or self._read(1):
                raise self.damaged("it continues after its end")
            return None
        kind, size = self._parsed(header)
        name = header[:100].split(b"\0")[0]
        if kind == LONG_NAME:
            if not 100 < size <= LONGEST_NAME:
                raise self.damaged(f"a name has {size:,} bytes")
            name = self.content(size).rstrip(b"\0")
            kind, size = self._parsed(self._exactly(BLOCK))
        if kind not in FILE:
            raise self.damaged("it holds entries that are not regular files")
        return self._plain(name), size

    def content(self, size: int) -> bytes:
        content = self._exactly(size)
        self._exactly(-size % BLOCK)
        return content

    def _parsed(self, header: bytes) -> tuple[bytes, int]:
        """Return the kind and size of an entry."""
        sum_of_bytes = sum(header[:148]) + 8 * ord(" ") + sum(header[156:])
        if self._octal(header[148:156]) != sum_of_bytes or header[345:500].strip(b"\0"):
            raise self.damaged("it is not a plain tar archive")
        return header[156:157], self._octal(header[124:136])

    def _octal(self, text: bytes) -> int:
        digits = text.strip(b" \0")
        if not digits or not OCTAL.issuperset(digits):
            raise self.damaged("it is not a plain tar archive")
        return int(digits, 8)

    def _plain(self, name: bytes) -> str:
        """Return the name, if it stays below the directory that it is written to."""
        try:
            text = name.decode()
        except UnicodeDecodeError:
            raise self.damaged("a name in it is not UTF-8") from None
        parts = text.split("/")
        is_short = len(parts) <= DEEPEST and max(map(len, map(str.encode, parts))) <= LONGEST_PART
        if not text.isprintable() or {"", ".", ".."} & {*parts} or not is_short:
            raise self.damaged(f"it holds a file with the name {text[:LONGEST_PART]!r}")
        return text

    def _exactly(self, size: int) -> bytes:
        content = BytesIO()  # frees its bytes without a copy
        while content.tell() < size:
            piece = self._read(min(size - content.tell(), PIECE))
            if not piece:
                raise self.damaged("it is cut short")
            content.write(piece)
        return content.getvalue()
