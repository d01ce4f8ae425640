"""Reads a Debian package of unknown origin, without unpacking it: names and digests of its files, and the few contents
that are asked for. Nothing of it is run, and nothing is written.
"""

from __future__ import annotations

import hashlib
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, Self, cast

from kdyno.base.errors import UserError
from kdyno.base.names import printable
from kdyno.kernel.built_kernels.header import MOST_KERNEL
from kdyno.ship.card import DIRECTORY, MOST_BYTES

AR, MEMBER, MEMBER_END = b"!<arch>\n", 60, b"`\n"
MOST_PACKAGE = 4_000_000_000
"""Bytes of a package."""
MOST_CONTROL = 10_000_000
"""Bytes of the unpacked control part."""
MOST_DATA = 16_000_000_000
"""Bytes of the unpacked data part."""
MOST_FILES = 500_000
LONGEST_NAME = 65_536
"""Bytes of a name, or of what else comes before a file."""
PIECE = 1 << 20
MEMORY = 256_000_000
"""Bytes that xz may use to unpack."""
FIELD = re.compile(r"(Package|Version|Architecture): ([A-Za-z0-9.+~:-]{1,200})")
KERNEL = "boot/vmlinuz-"


class PackageUnreadable(UserError):
    message = "{path} is not a Debian package that kdyno can read: {why}"
    hint = "name a .deb that `kdyno ship` wrote, and compare its checksum with that of its origin"


@dataclass(frozen=True)
class PackageContent:
    """What a package says of itself, and what is in it."""

    name: str
    version: str
    architecture: str
    sha256: str
    files: dict[str, str]
    """By path: the SHA-256 of a file, or the kind and target of anything else."""
    cards: dict[str, bytes]
    """By path: the files that are in the place of a card."""
    kernels: dict[str, bytes]
    """By path: the files that are in the place of a kernel."""


KINDS = (
    *(tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE),
    *(tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
"""The kinds of entries that dpkg reads."""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Gzip:
    """zlib's decompressor with the interface of lzma's."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(zlib.MAX_WBITS | 16)

    @property
    def eof(self) -> bool:
        return self._decompressor.eof

    @property
    def needs_input(self) -> bool:
        return not self._decompressor.unconsumed_tail

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        return self._decompressor.decompress(self._decompressor.unconsumed_tail + data, max_length)


DECOMPRESSORS: dict[str, Callable[[], _Decompressor]] = {
    ".xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY),
    ".gz": _Gzip,
}


class _Member:
    """A part of the package, unpacked as it is read: never more than `most` bytes."""

    def __init__(self, file: IO[bytes], size: int, suffix: str, most: int) -> None:
        self._file, self._left, self._most = file, size, most
        self._decompressor = DECOMPRESSORS[suffix]()

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, and none at the end."""
        while not self._decompressor.eof:
            piece = self._file.read(min(self._left, PIECE)) if self._decompressor.needs_input else b""
            self._left -= len(piece)
            if not piece and self._decompressor.needs_input:
                raise ValueError("it is cut short")
            if unpacked := self._decompressor.decompress(piece, size):
                self._most -= len(unpacked)
                if self._most < 0:
                    raise ValueError("it unpacks to more bytes than a kernel has")
                return unpacked
        return b""


class _Entry(tarfile.TarInfo):
    """A header of a tar archive. A long name is held in memory as a whole, so its length is limited."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        entry = super().frombuf(buf, encoding, errors)
        if entry.type not in KINDS:
            raise ValueError("it has an entry of a kind that dpkg doesn't read")
        if not entry.isreg() and entry.size > LONGEST_NAME:
            raise ValueError(f"a name in it has more than {LONGEST_NAME:,} bytes")
        return entry


def read_package(path: Path) -> PackageContent:
    """Read a package. Raise PackageUnreadable."""
    try:
        with path.open("rb") as file:
            if not path.is_file() or path.stat().st_size > MOST_PACKAGE:
                raise ValueError(f"it is not a regular file of at most {MOST_PACKAGE:,} bytes")
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            return _read(file, sha256)
    except OSError as error:
        raise PackageUnreadable(path=path, why=error.strerror or str(error)) from None
    except (ValueError, EOFError, tarfile.TarError, lzma.LZMAError, zlib.error) as error:
        raise PackageUnreadable(path=path, why=str(error) or "it is damaged") from None


def _read(file: IO[bytes], sha256: str) -> PackageContent:
    if file.read(len(AR)) != AR:
        raise ValueError("it is not an ar archive")
    fields: dict[str, str] = {}
    reader = _Reader()
    parts = []
    for name, start, size in _members(file):
        file.seek(start)
        stem, dot, last = name.rpartition(".")
        suffix = dot + last
        parts.append(stem or name)
        if stem in ("control.tar", "data.tar") and suffix not in DECOMPRESSORS:
            raise ValueError(
                f"{name} is packed in another way than kdyno's packages, which have {'/'.join(DECOMPRESSORS)}"
            )
        if stem == "control.tar":
            fields = _fields(_Member(file, size, suffix, MOST_CONTROL))
        elif stem == "data.tar":
            reader.read(_Member(file, size, suffix, MOST_DATA))
    if parts != ["debian-binary", "control.tar", "data.tar"]:
        raise ValueError("its parts are not debian-binary, control.tar and data.tar")
    return PackageContent(
        name=fields["Package"],
        version=fields["Version"],
        architecture=fields["Architecture"],
        sha256=sha256,
        files=reader.files,
        cards=reader.cards,
        kernels=reader.kernels,
    )


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


def _tar(member: _Member) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    with tarfile.open(
        fileobj=cast(IO[bytes], member), mode="r|", encoding="utf-8", tarinfo=_Entry, bufsize=PIECE
    ) as archive:
        for number, entry in enumerate(archive):
            if number >= MOST_FILES:
                raise ValueError(f"it has more than {MOST_FILES:,} files")
            archive.members = []  # type: ignore[attr-defined]  # tarfile keeps them all
            yield archive, entry


def _fields(member: _Member) -> dict[str, str]:
    text = None
    for archive, entry in _tar(member):
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


class _Reader:
    """Collects what is in the data part."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.cards: dict[str, bytes] = {}
        self.kernels: dict[str, bytes] = {}

    def read(self, member: _Member) -> None:
        for archive, entry in _tar(member):
            name = _plain(entry.name)
            if entry.isdir():
                continue
            if name in self.files:
                raise ValueError(f"it has {name} twice")
            if entry.isreg():
                self.files[name] = self._take(archive, entry, name)
            else:
                kind = "link" if entry.issym() or entry.islnk() else "special"
                self.files[name] = f"{kind} {printable(entry.linkname)[:4096]}"

    def _take(self, archive: tarfile.TarFile, entry: tarfile.TarInfo, name: str) -> str:
        content = archive.extractfile(entry)
        assert content
        most = _most_kept(name)
        if most and entry.size > most:
            raise ValueError(f"{name} in it has {entry.size:,} bytes")
        digest, kept = hashlib.sha256(), []
        while piece := content.read(PIECE):
            digest.update(piece)
            if most:
                kept.append(piece)
        if most:
            place = self.kernels if name.startswith(KERNEL) else self.cards
            place[name] = b"".join(kept)
        return digest.hexdigest()


def _most_kept(name: str) -> int:
    """Return how many bytes of a file are kept; 0 for a file of which the digest is enough."""
    if name.startswith(KERNEL):
        return MOST_KERNEL
    return MOST_BYTES if name.startswith(f"{DIRECTORY}/") else 0


def _plain(name: str) -> str:
    """Return the path of a file below the root. Raise ValueError for one that leads out."""
    parts = [part for part in PurePosixPath(name).parts if part not in (".", "/")]
    if ".." in parts or not name.isprintable():
        raise ValueError(f"it has a file with the name {name[:80]!r}")
    return "/".join(parts)
