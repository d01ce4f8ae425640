"""RPM packages and packages for pacman made by hand, sound ones and others."""

from __future__ import annotations

import hashlib
import lzma
import struct
from collections.abc import Callable, Mapping, Sequence

from tests.unit.ship_packages import KERNEL, RELEASE, card, tar

RPM_KERNEL = f"lib/modules/{RELEASE}/vmlinuz"
PACMAN_KERNEL = f"usr/lib/modules/{RELEASE}/vmlinuz"
RPM_NAME, PACMAN_NAME = "kernel-kdyno-0123456789ab", "linux-kdyno-0123456789ab"
CARD_FILE = f"usr/share/kdyno/cards/{RELEASE}.json"
RPM_CARD = card(package=RPM_NAME).written()
PACMAN_CARD = card(package=PACMAN_NAME).written()
INFO = f"pkgname = {PACMAN_NAME}\npkgver = 6.1.0-1\narch = x86_64\n"

Tag = tuple[int, Sequence[str] | Sequence[int] | str]
"""The type of a tag, and its value."""
FILE, DIRECTORY, LINK = 0o100644, 0o40755, 0o120777


def rpm_files(kernel: bytes = KERNEL, written: bytes = RPM_CARD) -> dict[str, bytes]:
    return {RPM_KERNEL: kernel, CARD_FILE: written, "lib/modules/a.ko": b"module"}


def header(tags: Mapping[int, Tag]) -> bytes:
    index, store = b"", b""
    for number, (kind, value) in tags.items():
        if kind in (3, 4):
            store += b"\0" * (-len(store) % 4)
        texts = [value] if isinstance(value, str) else value
        content = (
            struct.pack(f">{len(value)}{'H' if kind == 3 else 'I'}", *value)
            if kind in (3, 4)
            else b"".join(str(text).encode() + b"\0" for text in texts)
        )
        index += struct.pack(">IIII", number, kind, len(store), len(texts))
        store += content
    return b"\x8e\xad\xe8\x01\0\0\0\0" + struct.pack(">II", len(tags), len(store)) + index + store


def tags_of(files: Mapping[str, bytes], links: Mapping[str, str] = {}) -> dict[int, Tag]:
    """The header of a package with these files and links."""
    names = [*files, *links]
    parts = [f"/{name}".rpartition("/") for name in names]
    directories = list(dict.fromkeys(f"{head}/" for head, _, _ in parts))
    return {
        1000: (6, RPM_NAME),
        1001: (6, "6.1.0"),
        1002: (6, "1"),
        1022: (6, "x86_64"),
        1030: (3, [FILE if name in files else LINK for name in names]),
        1035: (8, [hashlib.sha256(files[name]).hexdigest() if name in files else "" for name in names]),
        1036: (8, [links.get(name, "") for name in names]),
        1037: (4, [0 for _ in names]),
        1116: (4, [directories.index(f"{head}/") for head, _, _ in parts]),
        1117: (8, [tail for _, _, tail in parts]),
        1118: (8, directories),
        1124: (6, "cpio"),
        1125: (6, "xz"),
        5011: (4, [8]),
    }


def cpio_entry(name: str, content: bytes, mode: int = FILE, links: int = 1, name_size: int | None = None) -> bytes:
    encoded = name.encode() + b"\0"
    size = len(encoded) if name_size is None else name_size
    fields = (1, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, size, 0)
    head = b"070701" + b"".join(f"{field:08x}".encode() for field in fields) + encoded
    return head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4)


def cpio(files: Mapping[str, bytes], links: Mapping[str, str] = {}) -> bytes:
    entries = [cpio_entry(f"./{name}", content) for name, content in files.items()]
    entries += [cpio_entry(f"./{name}", target.encode(), LINK) for name, target in links.items()]
    return b"".join([*entries, cpio_entry("TRAILER!!!", b"")])


def rpm(
    files: Mapping[str, bytes],
    links: Mapping[str, str] = {},
    *,
    archive: bytes | None = None,
    changes: Mapping[int, Tag] = {},
    pack: Callable[[bytes], bytes] = lzma.compress,
) -> bytes:
    signature = header({1000: (6, "a tag")})
    lead = b"\xed\xab\xee\xdb".ljust(96, b"\0")
    padding = b"\0" * (-len(signature) % 8)
    payload = cpio(files, links) if archive is None else archive
    return lead + signature + padding + header({**tags_of(files, links), **changes}) + pack(payload)


def pacman_files(kernel: bytes = KERNEL, written: bytes = PACMAN_CARD) -> list[tuple[str, bytes]]:
    return [(PACMAN_KERNEL, kernel), (CARD_FILE, written), ("usr/lib/modules/a.ko", b"module")]


def pacman(files: Sequence[tuple[str, bytes]], info: str = INFO, *links: tuple[str, str]) -> bytes:
    return lzma.compress(tar([(".MTREE", b"mtree"), (".PKGINFO", info.encode()), *files], *links))
