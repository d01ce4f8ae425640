"""What kdyno reads of a package of unknown origin, of any kind: its names, the digests of its files and the contents of
kernel and card. Everything has a limit, nothing of a package is run, and nothing is written.
"""

from __future__ import annotations

import hashlib
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Literal, Protocol, Self, cast

from kdyno.base.names import printable
from kdyno.base.regex import compile_pattern
from kdyno.kernel.built_kernels.header import MOST_KERNEL
from kdyno.ship.card import DIRECTORY, MOST_BYTES

PackageKind = Literal["deb", "rpm", "pacman"]
"""The package manager that a package is for."""

MOST_CONTROL = 10_000_000
"""Bytes of what a package says of itself, unpacked."""
MOST_DATA = 16_000_000_000
"""Bytes of the unpacked files."""
MOST_FILES = 500_000
LONGEST_NAME = 65_536
"""Bytes of a name, or of what else comes before a file."""
MOST_NAMES = 100_000_000
"""Characters of all names and targets of links together."""
PIECE = 1 << 20
MEMORY = 256_000_000
"""Bytes that xz may use to unpack."""
KERNEL = compile_pattern(r"^(?:boot/vmlinuz-.*|(?:usr/)?lib/modules/[^/]+/vmlinuz)$")
"""Where packages have the kernel: Debian's in /boot, the others with its modules."""


@dataclass(frozen=True)
class PackageContent:
    """What a package says of itself, and what is in it."""

    kind: PackageKind
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
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY),
    "gz": _Gzip,
}
"""By the ending of a name: what unpacks it."""


class PackedPart:
    """A part of a package, unpacked as it is read: never more than `most` bytes."""

    def __init__(self, file: IO[bytes], size: int, packing: str, most: int) -> None:
        self._file, self._left, self._most = file, size, most
        self._decompressor = DECOMPRESSORS[packing]()

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


class FileCollector:
    """Collects the digests of a package's files, and the contents of its cards and kernels."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.cards: dict[str, bytes] = {}
        self.kernels: dict[str, bytes] = {}
        self._characters = 0

    def content(self, kind: PackageKind, name: str, version: str, architecture: str, sha256: str) -> PackageContent:
        """Return what was collected, as the content of the package with that name."""
        return PackageContent(
            kind=kind,
            name=name,
            version=version,
            architecture=architecture,
            sha256=sha256,
            files=self.files,
            cards=self.cards,
            kernels=self.kernels,
        )

    def add_file(self, written_name: str, size: int, read: Callable[[int], bytes]) -> None:
        """Take a file, of which `read` returns up to so many bytes, and none at the end."""
        name = self._new(written_name)
        most = _most_kept(name)
        if most and size > most:
            raise ValueError(f"{name} in it has {size:,} bytes")
        digest, kept = hashlib.sha256(), []
        while piece := read(PIECE):
            digest.update(piece)
            if most:
                kept.append(piece)
        if most:
            place = self.kernels if KERNEL.search(name) else self.cards
            place[name] = b"".join(kept)
        self.files[name] = digest.hexdigest()

    def add_other(self, written_name: str, kind: str, target: str) -> None:
        """Take a link, or something that is neither file nor directory."""
        self.files[self._new(written_name)] = f"{kind} {shown_target(target)}"

    def _new(self, written_name: str) -> str:
        name = plain_path(written_name)
        if name in self.files:
            raise ValueError(f"it has {name} twice")
        if len(self.files) >= MOST_FILES:
            raise ValueError(f"it has more than {MOST_FILES:,} files")
        self._characters += len(name)
        if self._characters > MOST_NAMES:
            raise ValueError(f"the names in it have more than {MOST_NAMES:,} characters")
        return name


def shown_target(target: str) -> str:
    """Return where a link leads to, as it can be shown and compared."""
    return printable(target[:4096])


def _most_kept(name: str) -> int:
    """Return how many bytes of a file are kept; 0 for a file of which the digest is enough."""
    if KERNEL.search(name):
        return MOST_KERNEL
    return MOST_BYTES if name.startswith(f"{DIRECTORY}/") else 0


def plain_path(name: str) -> str:
    """Return the path of a file below the root. Raise ValueError for one that leads out."""
    parts = [part for part in PurePosixPath(name).parts if part not in (".", "/", "//")]
    if ".." in parts or not name.isprintable():
        raise ValueError(f"it has a file with the name {name[:80]!r}")
    return "/".join(parts)


KINDS = (
    *(tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE),
    *(tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
"""The kinds of entries that dpkg reads, and that kdyno writes for pacman."""


class _Entry(tarfile.TarInfo):
    """A header of a tar archive. A long name is held in memory as a whole, so its length is limited."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        entry = super().frombuf(buf, encoding, errors)
        if entry.type not in KINDS:
            raise ValueError("it has an entry of a kind that kdyno's packages lack")
        if not entry.isreg() and entry.size > LONGEST_NAME:
            raise ValueError(f"a name in it has more than {LONGEST_NAME:,} bytes")
        return entry


def tar_entries(part: PackedPart) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield each entry of a tar archive, with the archive that its content is read from."""
    with tarfile.open(
        fileobj=cast(IO[bytes], part), mode="r|", encoding="utf-8", tarinfo=_Entry, bufsize=PIECE
    ) as archive:
        for number, entry in enumerate(archive):
            if number >= MOST_FILES:
                raise ValueError(f"it has more than {MOST_FILES:,} files")
            archive.members = []  # type: ignore[attr-defined]  # tarfile keeps them all
            yield archive, entry


def take_entry(collector: FileCollector, archive: tarfile.TarFile, entry: tarfile.TarInfo) -> None:
    """Give an entry of a tar archive to the collector."""
    if entry.isdir():
        plain_path(entry.name)
    elif entry.isreg():
        content = archive.extractfile(entry)
        assert content
        collector.add_file(entry.name, entry.size, content.read)
    else:
        collector.add_other(entry.name, "link" if entry.issym() or entry.islnk() else "special", entry.linkname)
