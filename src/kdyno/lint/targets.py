"""Which files to look through: an image's vmlinux, a file, or the kernel objects of a directory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kdyno.errors import UserError
from kdyno.files import read_whole
from kdyno.kernel.images import find_image
from kdyno.state import State

SYMBOLS = "System.map"
MOST_BYTES = 100_000_000
"""Of a table of symbols."""
MOST_COMMAND_BYTES = 10_000_000
"""Of the file in which Kbuild keeps an object's command."""
KERNEL_WORD = b"-D__KERNEL__"
OTHER_CODE = frozenset((b"-m16", b"-m32", b"-fPIC", b"-fpic", b"-fPIE", b"-fpie"))
"""Words of commands whose code is not that of the running kernel: boot code, real mode, vDSO, decompressor."""
SYMBOL = re.compile(r"^[0-9a-fA-F]+ \S (\S+)", re.M)


class NothingToLint(UserError):
    message = "{directory} has no objects of a kernel"
    hint = "name an object directory of a kernel build, objects, a vmlinux, or the key of an image"


class SymbolsUnreadable(UserError):
    message = "can't read the symbols in {path}: {why}"
    hint = "a System.map has one symbol in a line: its address, its kind and its name"


@dataclass(frozen=True)
class Targets:
    files: tuple[str, ...]
    symbols: tuple[str, ...]
    """Names that the kernel has beside those of the files."""
    is_whole: bool
    """A name that neither the files nor `symbols` have is nowhere."""


def find_targets(named: Sequence[str], symbols: Path | None, state: State) -> Targets:
    """What a user means by files, directories and keys of images.

    Raises NothingToLint, SymbolsUnreadable, and what find_image raises.
    """
    files: list[str] = []
    names = list(read_symbols(symbols)) if symbols else []
    is_whole = symbols is not None
    for name in named:
        path = Path(name)
        if path.is_dir() and path.resolve().parent != state.images.resolve():
            objects = list(kernel_objects(path))
            if not objects:
                raise NothingToLint(directory=path)
            files += map(str, objects)
            if (path / SYMBOLS).is_file():
                names += read_symbols(path / SYMBOLS)
                is_whole = True
        elif path.is_file():
            files.append(name)
        else:
            files.append(str(find_image(name, state).vmlinux))
    return Targets(tuple(dict.fromkeys(files)), tuple(dict.fromkeys(names)), is_whole)


def read_symbols(path: Path) -> list[str]:
    """The names in a System.map, or in what `nm` prints. Raises SymbolsUnreadable."""
    try:
        text = read_whole(path, MOST_BYTES).decode(errors="replace")
    except OSError as error:
        raise SymbolsUnreadable(path=path, why=error.strerror) from error
    names = SYMBOL.findall(text)
    if not names:
        raise SymbolsUnreadable(path=path, why="no line of it is one of a table of symbols")
    return names


def kernel_objects(directory: Path) -> Iterator[Path]:
    """The objects below a directory that hold code of the running kernel, in order."""
    for folder, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(".o") and path.is_file() and is_kernel_code(path):
                yield path


def is_kernel_code(path: Path) -> bool:
    """Whether an object was compiled for the running kernel, by the command that Kbuild left beside it.

    What is only linked from other objects isn't: those are looked through. Without such a file the answer is yes.
    """
    try:
        command = read_whole(path.with_name(f".{path.name}.cmd"), MOST_COMMAND_BYTES).split(b"\n", 1)[0].split()
    except OSError:
        return True
    # Its assembly code is compiled as the kernel's is.
    is_vdso_assembly = path.parent.name == "vdso" and any(word.endswith(b".S") for word in command)
    return KERNEL_WORD in command and OTHER_CODE.isdisjoint(command) and not is_vdso_assembly
