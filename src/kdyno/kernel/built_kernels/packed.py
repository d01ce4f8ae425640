"""Packed bytes of kernels and modules: recognised by their first bytes, and unpacked up to a limit."""

from __future__ import annotations

import bz2
import lzma
import subprocess
import zlib
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import IO, Protocol

from kdyno.base.errors import UserError
from kdyno.base.installed import find_program
from kdyno.base.packages import install_advice
from kdyno.base.process import spawn
from kdyno.base.threads import ThreadCall

PIECE = 1 << 20
SIZE_BYTES = 4
"""The size of the unpacked data, which Kbuild appends to all but gzip (`size_append` of scripts/Makefile.lib)."""


class NotUnpackable(UserError):
    message = "{what} can't be unpacked: {why}"
    hint = "kernels and modules may be packed with gzip, bzip2, xz, lzma, zstd and lz4"


def unpacked(content: bytes, most_bytes: int, what: str) -> bytes:
    """Return the unpacked bytes. Raise NotUnpackable for more than `most_bytes`, and for damaged data.

    Content that isn't packed is returned unchanged.
    """
    for magic, unpack in FORMATS.items():
        if content.startswith(magic):
            try:
                plain = unpack(content, most_bytes + 1)
            except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
                raise NotUnpackable(what=what, why=f"it is damaged ({error})") from None
            if len(plain) > most_bytes:
                raise NotUnpackable(what=what, why=f"it unpacks to more than {most_bytes:,} bytes")
            return plain
    return content


def payload_of(kernel: bytes, payload: range, most_bytes: int, what: str) -> bytes:
    """Return the vmlinux in a bzImage, without its symbols. Raise NotUnpackable."""
    packed = kernel[payload.start : payload.stop]
    if not packed.startswith(tuple(FORMATS)):
        if packed.startswith(b"\x7fELF"):
            return packed
        raise NotUnpackable(what=what, why="it is packed with an unknown format")
    return unpacked(packed if packed.startswith(GZIP) else packed[:-SIZE_BYTES], most_bytes, what)


class _Decompressor(Protocol):
    """The common interface of the decompressors of zlib, bz2 and lzma."""

    @property
    def eof(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _with(made: Callable[[], _Decompressor]) -> Callable[[bytes, int], bytes]:
    def run(content: bytes, most: int) -> bytes:
        decompressor = made()
        plain = decompressor.decompress(content, most)
        if len(plain) < most and not decompressor.eof:
            raise ValueError("it is cut short")
        return plain

    return run


def _by(program: str) -> Callable[[bytes, int], bytes]:
    def run(content: bytes, most: int) -> bytes:
        path = find_program(program, f"what is packed with {program}", install_advice(program))
        words = [str(path), "-dc"]
        with spawn(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            assert child.stdin and child.stdout
            ThreadCall(_feed, child.stdin, content)
            plain = BytesIO()  # frees its bytes without a copy
            while plain.tell() < most and (piece := child.stdout.read(min(PIECE, most - plain.tell()))):
                plain.write(piece)
            if plain.tell() < most and child.wait():
                raise ValueError(f"{program} ended with status {child.returncode}")
        return plain.getvalue()

    return run


def _feed(pipe: IO[bytes], content: bytes) -> None:
    with suppress(BrokenPipeError), pipe:  # who reads no more has enough, or says why
        pipe.write(content)


MOST_MEMORY = 128 << 20
"""Bytes that unpacking xz may take."""
GZIP = b"\x1f\x8b\x08"
FORMATS: dict[bytes, Callable[[bytes, int], bytes]] = {
    GZIP: _with(lambda: zlib.decompressobj(wbits=31)),
    b"BZh": _with(bz2.BZ2Decompressor),
    b"\xfd7zXZ\0": _with(lambda: lzma.LZMADecompressor(memlimit=MOST_MEMORY)),
    b"\x5d\0\0": _with(lambda: lzma.LZMADecompressor(memlimit=MOST_MEMORY)),
    b"\x28\xb5\x2f\xfd": _by("zstd"),
    b"\x02\x21\x4c\x18": _by("lz4"),
}
"""Programs by the first bytes; lz4 in the format that Kbuild calls (`lz4 -l`)."""
