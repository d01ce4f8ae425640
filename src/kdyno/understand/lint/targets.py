"""The files to check: an image's vmlinux, a file, or the kernel objects or modules of a directory."""

from __future__ import annotations

import os
import re
import tempfile
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
from kdyno.kernel.built_kernels.modules import MOST_FILES, ModuleUnfit, name_of, read_module
from kdyno.kernel.built_kernels.packed import NotUnpackable, payload_of
from kdyno.kernel.image import Image
from kdyno.kernel.vmlinux.elf_sections import Damaged, MappedElf
from kdyno.runs.subject import NamedDirectory, NamedFile, find_subject

SYMBOLS = "System.map"
MOST_BYTES = 100_000_000
"""The largest table of symbols that is read."""
MOST_COMMAND_BYTES = 10_000_000
"""The largest file with the command of an object that is read; Kbuild writes it."""
KERNEL_WORD = b"-D__KERNEL__"
OTHER_CODE = frozenset((b"-m16", b"-m32", b"-fPIC", b"-fpic", b"-fPIE", b"-fpie"))
"""Words of commands for code outside of the running kernel: boot code, real mode, vDSO, decompressor."""
SYMBOL = re.compile(r"^([0-9a-fA-F]{1,16}) (\S) (\S+)", re.M)
FUNCTIONS = "tTwW"
"""The kinds of symbols of functions, in the letters of `nm`."""


Function = tuple[int, bool, str]
"""The address of a function, whether others can call it by name, and its name."""


class NothingToLint(UserError):
    message = "{directory} has no objects or modules of a kernel"
    hint = "name the directory of a kernel build, /lib/modules/RELEASE, objects, a vmlinux, or the key of an image"


class SymbolsUnreadable(UserError):
    message = "the symbols in {path} cannot be read: {why}"
    hint = "name a System.map, whose lines are an address, a kind and a name"


@dataclass(frozen=True)
class Symbols:
    """A table of symbols."""

    names: tuple[str, ...]
    functions: tuple[Function, ...]


@dataclass(frozen=True)
class Targets:
    files: tuple[str, ...]
    symbols: tuple[str, ...]
    """Names that the kernel has besides those of the files."""
    is_whole: bool
    """Whether the files and `symbols` have all names of the kernel."""
    functions: Mapping[str, Sequence[Function]] = field(default_factory=dict)
    """By file, the functions of a linked kernel that was stripped of its symbols."""
    names: Mapping[str, str] = field(default_factory=dict)
    """By file that was unpacked, the file that it is from."""


def find_targets(subject_names: Sequence[str], symbols: Path | None, scratch: Path, state: State) -> Targets:
    """Find the named files, directories and images. The vmlinux of a bzImage, and packed modules, are unpacked to
    `scratch`.

    Raises NothingToLint, SymbolsUnreadable, NotUnpackable, and what find_subject raises.
    """
    files: list[str] = []
    origins: dict[str, str] = {}
    symbol_table = read_symbols(symbols) if symbols else Symbols((), ())
    names = list(symbol_table.names)
    functions: dict[str, Sequence[Function]] = {}
    is_whole = symbols is not None
    for name in subject_names:
        subject = find_subject(name, ("image", "elf", "kernel", "directory", "file"), state)
        if isinstance(subject, NamedDirectory):
            path = subject.path
            objects = list(kernel_objects(path)) or list(modules_below(path))
            if not objects:
                raise NothingToLint(directory=path)
            for object_file in objects:
                file = _unpack_module(object_file, scratch) or object_file
                files.append(str(file))
                origins[str(file)] = str(object_file)
            if (path / SYMBOLS).is_file():
                names += read_symbols(path / SYMBOLS).names
                is_whole = True
        else:
            assert isinstance(subject, NamedFile | Image)
            path = subject.vmlinux if isinstance(subject, Image) else subject.path
            file = _unpack(path, scratch) or _unpack_module(path, scratch) or path
            files.append(str(file))
            origins[str(file)] = str(path)
            functions[str(file)] = symbol_table.functions or own_functions(file)
    unpacked = {file: origin for file, origin in origins.items() if file != origin}
    return Targets(tuple(dict.fromkeys(files)), tuple(dict.fromkeys(names)), is_whole, functions, unpacked)


def _unpack(path: Path, scratch: Path) -> Path | None:
    """Unpack the vmlinux of a bzImage; None for any other file. Raises NotUnpackable."""
    with suppress(OSError, NotABootableKernel):  # kdyno-lint reports a file that it can't read
        with path.open("rb") as file:
            if file.read(HEAD)[MAGIC_AT : MAGIC_AT + len(MAGIC)] != MAGIC:
                return None
        kernel = read_whole(path, MOST_KERNEL)
        payload = read_header(kernel, path).payload
        vmlinux = scratch / f"{path.name}.vmlinux"
        vmlinux.write_bytes(payload_of(kernel, payload, MOST_VMLINUX, str(path)))
        return vmlinux
    return None


def _unpack_module(path: Path, scratch: Path) -> Path | None:
    """Unpack a packed module; None for any other file, and for one that is damaged: kdyno-lint reports that."""
    if name_of(path.name) is None or path.suffix == ".ko":
        return None
    with suppress(ModuleUnfit, NotUnpackable):
        content = read_module(path)
        with tempfile.NamedTemporaryFile(dir=scratch, suffix=".ko", delete=False) as file:
            file.write(content)
        return Path(file.name)
    return None


def own_functions(vmlinux: Path) -> list[Function]:
    """Return the functions in the kallsyms of a linked kernel without a table of symbols; empty for any other file."""
    try:
        content = read_whole(vmlinux, MOST_VMLINUX)
        if MappedElf(content).section(".symtab"):
            return []
    except (OSError, Damaged):
        return []
    return [(symbol.address, symbol.kind.isupper(), symbol.name) for symbol in kallsyms(content)]


def read_symbols(path: Path) -> Symbols:
    """Read a System.map, or the output of `nm`. Raises SymbolsUnreadable."""
    try:
        text = read_whole(path, MOST_BYTES).decode(errors="replace")
    except OSError as error:
        raise SymbolsUnreadable(path=path, why=error.strerror) from error
    lines = SYMBOL.findall(text)
    if not lines:
        raise SymbolsUnreadable(path=path, why="it has no line of a table of symbols")
    functions = tuple((int(address, 16), kind.isupper(), name) for address, kind, name in lines if kind in FUNCTIONS)
    return Symbols(tuple(name for *_, name in lines), functions)


def kernel_objects(directory: Path) -> Iterator[Path]:
    """Yield the objects below a directory that contain code of the running kernel, in order."""
    for folder, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(".o") and path.is_file() and is_kernel_code(path):
                yield path


def modules_below(directory: Path) -> Iterator[Path]:
    """Yield the modules below a directory such as /lib/modules/RELEASE, in order."""
    looked_at = 0
    for folder, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            looked_at += 1
            if looked_at > MOST_FILES:
                return
            path = Path(folder, name)
            if name_of(name) is not None and path.is_file():
                yield path


def is_kernel_code(path: Path) -> bool:
    """Return whether an object was compiled for the running kernel, by the command that Kbuild stored beside it.

    An object that is only linked from others was not: those are checked. Without such a file the answer is yes.
    """
    try:
        command = read_whole(path.with_name(f".{path.name}.cmd"), MOST_COMMAND_BYTES).split(b"\n", 1)[0].split()
    except OSError:
        return True
    # The assembly code of the vDSO is compiled like that of the kernel.
    is_vdso_assembly = path.parent.name == "vdso" and any(word.endswith(b".S") for word in command)
    return KERNEL_WORD in command and OTHER_CODE.isdisjoint(command) and not is_vdso_assembly
