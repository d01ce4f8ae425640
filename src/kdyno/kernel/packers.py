"""Programs besides the compiler that decide the bytes of an image: the packer, and the maker of its type information.

A kernel unpacks itself before it starts. So another version of the packer is another number of instructions until its
first, its timer ticks at other moments, and what a benchmark counts differs by one or two.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kdyno.base import process
from kdyno.base.digests import file_digest, stat_signature
from kdyno.base.frozen import digest
from kdyno.base.state import State

PACKERS = {
    "KERNEL_GZIP": "gzip",
    "KERNEL_BZIP2": "bzip2",
    "KERNEL_LZMA": "lzma",
    "KERNEL_XZ": "xz",
    "KERNEL_LZO": "lzop",
    "KERNEL_LZ4": "lz4",
    "KERNEL_ZSTD": "zstd",
}
"""By Kconfig symbol: the program that the kernel's Makefile calls."""
TYPES = {"DEBUG_INFO_BTF": "pahole", "IKCONFIG": "pahole"}
"""The second for its version, which Kconfig writes into every configuration, and IKCONFIG puts into the kernel."""
LIBRARY = re.compile(r"=> (/\S*/lib(?:z|bz2|lzma|lzo2|lz4|zstd|dwarves\w*|elf|dw)\.so\S*)")
"""Names of packing libraries in the output of ldd."""


def digests(asked: Mapping[str, str], is_packed: bool, state: State) -> dict[str, str | None]:
    """Return a digest by name of each program that a kernel with this configuration, as far as it is known, is made
    with; None if it isn't installed. A configuration that names no packer may come to have any. A kernel that is a
    program (ARCH=um) is not packed.
    """
    known = [program for symbol, program in PACKERS.items() if asked.get(symbol) == "y"]
    types = [program for symbol, program in TYPES.items() if asked.get(symbol, "n") != "n"]
    used_packers = (known or PACKERS.values()) if is_packed else ()
    return {name: _digest(name, state) for name in sorted({*used_packers, *types})}


def _digest(name: str, state: State) -> str | None:
    program = shutil.which(name)
    if program is None:
        return None
    path = Path(program).resolve()
    return _of_program(path, stat_signature([path])[0], state)


@cache
def _of_program(path: Path, signature: str, state: State) -> str:  # noqa: ARG001
    """Return the digest of a program with its libraries; it is computed once, as long as the program doesn't change."""
    libraries = {Path(library).resolve() for library in LIBRARY.findall(process.attempt(["ldd", path]).stdout)}
    return digest([file_digest(file, state) for file in (path, *sorted(libraries))])
