"""Which files to look through: an image's vmlinux, a file, or the kernel objects of a directory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.state import State
from kdyno.kernel.built_kernels.adopt import MOST_VMLINUX
from kdyno.kernel.built_kernels.header import HEAD, MAGIC, MAGIC_AT, MOST_KERNEL, NotABootableKernel, read_header
from kdyno.kernel.built_kernels.kallsyms import kallsyms
from kdyno.kernel.built_kernels.packed import payload_of
from kdyno.kernel.image import Image
from kdyno.profile.elf_sections import Damaged, MappedElf
from kdyno.runs.subject import NamedDirectory, NamedFile, find_subject

SYMBOLS = "System.map"
MOST_BYTES = 100_000_000
"""Of a table of symbols."""
MOST_COMMAND_BYTES = 10_000_000
"""Of the file in which Kbuild keeps an object's command."""
KERNEL_WORD = b"-D__KERNEL__"
OTHER_CODE = frozenset((b"-m16", b"-m32", b"-fPIC", b"-fpic", b"-fPIE", b"-fpie"))
"""Words of commands whose code is not that of the running kernel: boot code, real mode, vDSO, decompressor."""
SYMBOL = re.compile(r"^([0-9a-fA-F]{1,16}) (\S) (\S+)", re.M)
FUNCTIONS = "tTwW"
"""Kinds of symbols, as `nm` has them."""


Function = tuple[int, bool, str]
"""Its address, whether others can call it by name, and its name."""


class NothingToLint(UserError):
    message = "{directory} has no objects of a kernel"
    hint = "name an object directory of a kernel build, objects, a vmlinux, or the key of an image"


class SymbolsUnreadable(UserError):
    message = "can't read the symbols in {path}: {why}"
    hint = "a System.map has one symbol in a line: its address, its kind and its name"


@dataclass(frozen=True)
class Symbols:
    """A table of symbols."""

    names: tuple[str, ...]
    functions: tuple[Function, ...]


@dataclass(frozen=True)
class Targets:
    files: tuple[str, ...]
    symbols: tuple[str, ...]
    """Names that the kernel has beside those of the files."""
    is_whole: bool
    """A name that neither the files nor `symbols` have is nowhere."""
    functions: Mapping[str, Sequence[Function]] = field(default_factory=dict)
    """By file, those of a linked kernel that was stripped of its symbols."""


def find_targets(named: Sequence[str], symbols: Path | None, scratch: Path, state: State) -> Targets:
    """What a user means by files, directories and keys of images. What is packed in a bzImage goes to `scratch`.

    Raises NothingToLint, SymbolsUnreadable, NotUnpackable, and what find_subject raises.
    """
    files: list[str] = []
    given = read_symbols(symbols) if symbols else Symbols((), ())
    names = list(given.names)
    functions: dict[str, Sequence[Function]] = {}
    is_whole = symbols is not None
    for name in named:
        subject = find_subject(name, ("image", "elf", "kernel", "directory", "file"), state)
        if isinstance(subject, NamedDirectory):
            path = subject.path
            objects = list(kernel_objects(path))
            if not objects:
                raise NothingToLint(directory=path)
            files += map(str, objects)
            if (path / SYMBOLS).is_file():
                names += read_symbols(path / SYMBOLS).names
                is_whole = True
        else:
            assert isinstance(subject, NamedFile | Image)
            path = subject.vmlinux if isinstance(subject, Image) else subject.path
            file = _unpacked(path, scratch) or path
            files.append(str(file))
            functions[str(file)] = given.functions or own_functions(file)
    return Targets(tuple(dict.fromkeys(files)), tuple(dict.fromkeys(names)), is_whole, functions)


def _unpacked(path: Path, scratch: Path) -> Path | None:
    """The vmlinux that is packed in a bzImage; None of any other file. Raises NotUnpackable."""
    with suppress(OSError, NotABootableKernel):  # kdyno-lint says what a file is that it can't read
        with path.open("rb") as file:
            if file.read(HEAD)[MAGIC_AT : MAGIC_AT + len(MAGIC)] != MAGIC:
                return None
        kernel = read_whole(path, MOST_KERNEL)
        payload = read_header(kernel, path).payload
        vmlinux = scratch / f"{path.name}.vmlinux"
        vmlinux.write_bytes(payload_of(kernel, payload, MOST_VMLINUX, str(path)))
        return vmlinux
    return None


def own_functions(vmlinux: Path) -> list[Function]:
    """What a linked kernel without a table of symbols says of itself (CONFIG_KALLSYMS); nothing of any other file."""
    try:
        content = read_whole(vmlinux, MOST_VMLINUX)
        if MappedElf(content).section(".symtab"):
            return []
    except (OSError, Damaged):
        return []
    return [(symbol.address, symbol.kind.isupper(), symbol.name) for symbol in kallsyms(content)]


def read_symbols(path: Path) -> Symbols:
    """What is in a System.map, or in what `nm` prints. Raises SymbolsUnreadable."""
    try:
        text = read_whole(path, MOST_BYTES).decode(errors="replace")
    except OSError as error:
        raise SymbolsUnreadable(path=path, why=error.strerror) from error
    lines = SYMBOL.findall(text)
    if not lines:
        raise SymbolsUnreadable(path=path, why="no line of it is one of a table of symbols")
    functions = tuple((int(address, 16), kind.isupper(), name) for address, kind, name in lines if kind in FUNCTIONS)
    return Symbols(tuple(name for *_, name in lines), functions)


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
