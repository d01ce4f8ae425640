"""Reads an RPM package of unknown origin, without unpacking it: two headers, and a cpio archive.

rpm takes the names and digests of files from the header, and their contents from the archive; the two must agree. The
format: docs/manual/format_v4.md of rpm, and cpio(5) for "newc".
"""

from __future__ import annotations

import re
import stat
import struct
from collections.abc import Iterator
from typing import IO

from kdyno.ship.package_content import (
    LONGEST_NAME,
    MOST_DATA,
    MOST_FILES,
    MOST_NAMES,
    PIECE,
    FileCollector,
    PackageContent,
    PackedPart,
    plain_path,
    shown_target,
)

LEAD, LEAD_SIZE = b"\xed\xab\xee\xdb", 96
HEADER = b"\x8e\xad\xe8\x01"
MOST_ENTRIES = 65_535
MOST_HEADER = 16_000_000
"""Bytes of a header."""
PAYLOADS = {"xz": "xz", "gzip": "gz"}
"""By rpm's name: what an archive is packed by."""
CPIO_HEAD, CPIO_SIZE, TRAILER = re.compile(rb"070701[0-9a-fA-F]{104}"), 110, "TRAILER!!!"
GHOST = 1 << 6
"""RPMFILE_GHOST: the package owns the file, and doesn't have it."""
SHA256 = 8
"""PGPHASHALGO_SHA256."""
TEXT, TEXTS, TRANSLATED = 6, 8, 9
INT16, INT32 = 3, 4
TAGS = {
    1000: "name",
    1001: "version",
    1002: "release",
    1022: "arch",
    1030: "modes",
    1035: "digests",
    1036: "links",
    1037: "flags",
    1116: "places",
    1117: "bases",
    1118: "directories",
    1124: "format",
    1125: "packing",
    5011: "algorithm",
}
"""The tags that are read, by their numbers (rpmtag.h)."""
WORD = re.compile(r"[A-Za-z0-9._+~^-]{1,200}")

Tag = str | list[str] | list[int]


def read_rpm(file: IO[bytes], size: int, sha256: str) -> PackageContent:
    """Read a package of `size` bytes. Raise ValueError, or the errors of lzma and zlib."""
    if file.read(LEAD_SIZE)[: len(LEAD)] != LEAD:
        raise ValueError("it is not an RPM package")
    _, signature_size = _header(file)
    file.read(-signature_size % 8)
    tags, _ = _header(file)
    name, version, release, arch = (_word(tags, key) for key in ("name", "version", "release", "arch"))
    packing = PAYLOADS.get(str(tags.get("packing", "gzip")))
    if packing is None or tags.get("format", "cpio") != "cpio":
        raise ValueError(f"its files are packed in another way than kdyno's packages, which have {'/'.join(PAYLOADS)}")
    expected = _files_of_header(tags)
    collector = _read_archive(PackedPart(file, size - file.tell(), packing, MOST_DATA))
    _require_agreement(expected, collector.files)
    return collector.content("rpm", name, f"{version}-{release}", arch, sha256)


def _header(file: IO[bytes]) -> tuple[dict[str, Tag], int]:
    """Return the tags of the header at this place that are read, and its size."""
    head = file.read(16)
    if len(head) != 16 or head[:4] != HEADER:
        raise ValueError("a header of it is damaged or cut short")
    count, size = struct.unpack(">II", head[8:])
    if count > MOST_ENTRIES or size > MOST_HEADER:
        raise ValueError(f"a header of it has {count:,} entries and {size:,} bytes")
    index, store = file.read(16 * count), file.read(size)
    if len(index) != 16 * count or len(store) != size:
        raise ValueError("a header of it is cut short")
    tags: dict[str, Tag] = {}
    for tag, kind, at, number in struct.iter_unpack(">IIII", index):
        if key := TAGS.get(tag):
            if key in tags:
                raise ValueError(f"its header has the tag {tag} twice")
            tags[key] = _value(store, kind, at, number)
    return tags, 16 + len(index) + len(store)


def _value(store: bytes, kind: int, at: int, number: int) -> Tag:
    if number > MOST_FILES:
        raise ValueError(f"it has more than {MOST_FILES:,} files")
    if kind in (INT16, INT32):
        values = struct.unpack_from(f">{number}{'H' if kind == INT16 else 'I'}", store, at)
        return list(values)
    if kind not in (TEXT, TEXTS, TRANSLATED):
        raise ValueError("a tag of its header has an unexpected type")
    texts = []
    for _ in range(number):
        end = store.find(b"\0", at)
        if not 0 <= at <= end:
            raise ValueError("a tag of its header is cut short")
        texts.append(store[at:end].decode(errors="replace"))
        at = end + 1
    return texts if kind == TEXTS else (texts or [""])[0]


def _word(tags: dict[str, Tag], key: str) -> str:
    value = tags.get(key)
    if not isinstance(value, str) or not WORD.fullmatch(value):
        raise ValueError(f"its header names no {key}")
    return value


def _files_of_header(tags: dict[str, Tag]) -> dict[str, str]:
    """Return what the header says of files and links: by path, as in PackageContent."""
    modes, flags, places = (_numbers(tags, key) for key in ("modes", "flags", "places"))
    digests, links, bases, directories = (_texts(tags, key) for key in ("digests", "links", "bases", "directories"))
    if len({len(column) for column in (modes, flags, places, digests, links, bases)}) != 1:
        raise ValueError("the lists of files in its header differ in length")
    if bases and _numbers(tags, "algorithm") != [SHA256]:
        raise ValueError("the digests in its header are not SHA-256")
    files: dict[str, str] = {}
    characters = 0
    for mode, flag, place, digest, link, base in zip(modes, flags, places, digests, links, bases, strict=True):
        if place >= len(directories) or "/" in base:
            raise ValueError("the names of files in its header are damaged")
        if flag & GHOST or stat.S_ISDIR(mode):
            continue
        characters += len(directories[place]) + len(base)
        if characters > MOST_NAMES:
            raise ValueError(f"the names in it have more than {MOST_NAMES:,} characters")
        name = plain_path(directories[place] + base)
        if name in files:
            raise ValueError(f"it has {name} twice")
        files[name] = f"link {shown_target(link)}" if stat.S_ISLNK(mode) else digest
    return files


def _numbers(tags: dict[str, Tag], key: str) -> list[int]:
    return [value for value in tags.get(key, []) if isinstance(value, int)]


def _texts(tags: dict[str, Tag], key: str) -> list[str]:
    value = tags.get(key, [])
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else [value]


class _CpioReader:
    """Reads exact numbers of bytes of an archive."""

    def __init__(self, part: PackedPart) -> None:
        self._part, self._held = part, b""

    def piece(self, size: int) -> bytes:
        """Return up to `size` bytes; at the end of the archive raise ValueError."""
        if not self._held:
            self._held = self._part.read(PIECE)
            if not self._held:
                raise ValueError("its archive is cut short")
        piece, self._held = self._held[:size], self._held[size:]
        return piece

    def exactly(self, size: int) -> bytes:
        pieces = []
        while size:
            pieces.append(self.piece(size))
            size -= len(pieces[-1])
        return b"".join(pieces)

    def entries(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield name, mode, links and size of each entry; whoever takes one reads its content before the next."""
        for _ in range(MOST_FILES):
            head = self.exactly(CPIO_SIZE)
            if not CPIO_HEAD.fullmatch(head):
                raise ValueError("its archive is damaged, or of another kind than kdyno's")
            fields = [int(head[at : at + 8], 16) for at in range(6, CPIO_SIZE, 8)]
            mode, links, size, name_size = fields[1], fields[4], fields[6], fields[11]
            if not 0 < name_size <= LONGEST_NAME:
                raise ValueError(f"a name in it has more than {LONGEST_NAME:,} bytes")
            name = self.exactly(name_size)[:-1].decode(errors="replace")
            self.exactly(-(CPIO_SIZE + name_size) % 4)
            if name == TRAILER:
                return
            yield name, mode, links, size
            self.exactly(-size % 4)
        raise ValueError(f"it has more than {MOST_FILES:,} files")


def _read_archive(part: PackedPart) -> FileCollector:
    reader, collector = _CpioReader(part), FileCollector()
    for name, mode, links, size in reader.entries():
        if stat.S_ISDIR(mode):
            plain_path(name)
            if size:
                raise ValueError("a directory in it has content")
        elif stat.S_ISREG(mode) and links > 1:
            raise ValueError(f"{name[:80]!r} in it is a hard link")
        elif stat.S_ISREG(mode):
            left = [size]

            def read(most: int, left: list[int] = left) -> bytes:
                piece = reader.piece(min(most, left[0])) if left[0] else b""
                left[0] -= len(piece)
                return piece

            collector.add_file(name, size, read)
        else:
            if size > LONGEST_NAME:
                raise ValueError(f"a name in it has more than {LONGEST_NAME:,} bytes")
            target = reader.exactly(size).decode(errors="replace")
            collector.add_other(name, "link" if stat.S_ISLNK(mode) else "special", target)
    return collector


def _require_agreement(header: dict[str, str], archive: dict[str, str]) -> None:
    """Raise ValueError unless header and archive have the same files."""
    names = sorted({*header, *archive})
    if differing := [name for name in names if header.get(name) != archive.get(name)]:
        raise ValueError(f"its header and its archive differ in {differing[0][:80]!r}")
