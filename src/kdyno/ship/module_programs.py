"""The programs that come with a kernel's headers, since modules are built by them: objtool, modpost and others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kdyno.base import process

ELF = b"\x7fELF"
ANYWHERE = "libc.so.6"
"""The library that every system with a compiler has."""


def programs(directory: Path) -> Iterator[Path]:
    """Yield all programs in a directory, in the order of their names."""
    for path in sorted(directory.rglob("*")):
        if not path.is_symlink() and path.is_file() and path.stat().st_mode & 0o100:
            with path.open("rb") as file:
                is_program = file.read(len(ELF)) == ELF
            if is_program:
                yield path


def strip_programs(directory: Path) -> None:
    """Remove the debug information and the build IDs of all programs in a directory.

    They follow the directory of the build: the kernel compiles objtool with -g.
    """
    for program in programs(directory):
        process.output(["strip", "--strip-debug", "--remove-section=.note.gnu.build-id", program])


def needed_libraries(directory: Path) -> list[str]:
    """Return the libraries of all programs in a directory, such as `libelf.so.1`, without the C library."""
    listings = (
        process.output(["readelf", "--dynamic", program], env={"LC_ALL": "C"}) for program in programs(directory)
    )
    lines = [line for listing in listings for line in listing.splitlines() if "(NEEDED)" in line]
    return sorted({line.partition("[")[2].rpartition("]")[0] for line in lines} - {ANYWHERE})
