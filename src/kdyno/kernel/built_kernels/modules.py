"""Modules that a built kernel needs before the agent can talk to the host: which, from where, in which order."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.kernel.built_kernels.packed import unpacked

WANTED: Mapping[str, str] = {
    "VIRTIO_PCI": "virtio_pci",
    "VIRTIO_MMIO": "virtio_mmio",
    "VIRTIO_CONSOLE": "virtio_console",
    "VIRTIO_BLK": "virtio_blk",
    "NET_9P_VIRTIO": "9pnet_virtio",
    "9P_FS": "9p",
    "BLK_DEV_LOOP": "loop",
    "SQUASHFS": "squashfs",
    "OVERLAY_FS": "overlay",
}
"""By symbol of Kconfig: the module that it is with =m, for all that a guest of kdyno may need."""
SUFFIXES = (".ko", ".ko.xz", ".ko.zst", ".ko.gz")
MOST_PACKED, MOST_BYTES = 32_000_000, 64_000_000
"""Bytes of a module's file, and of all modules together that one kernel needs."""
MOST_INFO = 1 << 20
"""Bytes of .modinfo."""
MOST_FILES = 50_000
"""Files below /lib/modules/RELEASE; a distribution's kernel has 5,000."""
MOST_MODULES = 100
LONGEST_NAME = 56
"""MODULE_NAME_LEN of include/linux/module.h, less the byte that ends it."""


class ModuleMissing(UserError):
    message = "{kernel} needs the module {name} to be started here, and it is not in {directory}"
    hint = "put the modules of that very kernel there, or name its package: debian:PACKAGE"


class ModuleUnfit(UserError):
    message = "the module {name} can't be loaded: {why}"
    hint = "reinstall the package that it is from"


def name_of(file: str) -> str | None:
    """Return the module in a file, by its name; None if it is not a module."""
    suffix = next((suffix for suffix in SUFFIXES if file.endswith(suffix)), None)
    return file.removesuffix(suffix).replace("-", "_") if suffix else None


def wanted_of(config: Mapping[str, str]) -> list[str]:
    """Return the modules that kdyno may have to load for a kernel with this configuration."""
    return [module for symbol, module in WANTED.items() if config.get(symbol) == "m"]


def files_below(directory: Path) -> dict[str, Path]:
    """Return the modules below /lib/modules/RELEASE, by name. Links to directories are not followed."""
    files: dict[str, Path] = {}
    looked_at = 0
    for place, _, names in os.walk(directory):
        for file in names:
            looked_at += 1
            if looked_at > MOST_FILES:
                return files
            if module := name_of(file):
                files.setdefault(module, Path(place, file))
    return files


def read_module(path: Path) -> bytes:
    """Return a module's file, unpacked. Raise ModuleUnfit and NotUnpackable."""
    try:
        return unpacked(read_whole(path, MOST_PACKED), MOST_BYTES, str(path))
    except OSError as error:
        raise ModuleUnfit(name=path.name, why=error.strerror) from error


def closure(wanted: Iterable[str], files: Mapping[str, Path]) -> dict[str, bytes]:
    """Return these modules and all that they need, each after those that it needs.

    No module names built-in code. Raise KeyError with the name of a missing one, ModuleUnfit and NotUnpackable.
    """
    contents: dict[str, bytes] = {}
    size = 0
    left = list(wanted)
    while left:
        name = left.pop()
        if name in contents:
            continue
        if len(contents) >= MOST_MODULES:
            raise ModuleUnfit(name=name, why=f"with what it needs it is one of more than {MOST_MODULES} modules")
        contents[name] = read_module(files[name])
        size += len(contents[name])
        if size > MOST_BYTES:
            raise ModuleUnfit(name=name, why=f"with what it needs it has more than {MOST_BYTES:,} bytes")
        left += needs(contents[name], name)
    return {name: contents[name] for name in in_order(contents, contents)}


def in_order(wanted: Iterable[str], contents: Mapping[str, bytes]) -> list[str]:
    """Return the names of these modules and of what they need, each after what it needs; others than `contents` are
    left out.

    A circle, which Linux doesn't have, ends in any order.
    """
    order: dict[str, None] = {}
    under_way: set[str] = set()

    def put(name: str) -> None:
        if name in order or name in under_way or name not in contents:
            return
        under_way.add(name)
        for needed in needs(contents[name], name):
            put(needed)
        order[name] = None

    for name in wanted:
        put(name)
    return list(order)


def needs(module: bytes, name: str) -> list[str]:
    """Return the modules that one depends on, as modpost wrote it into its section .modinfo. Raise ModuleUnfit.
    Pure.
    """
    info = _section(module, b".modinfo", name)
    if len(info) > MOST_INFO:
        raise ModuleUnfit(name=name, why=f"its module information has more than {MOST_INFO:,} bytes")
    for entry in info.split(b"\0"):
        key, _, value = entry.partition(b"=")
        if key == b"depends":
            names = [word.decode(errors="replace").replace("-", "_") for word in value.split(b",") if word]
            if bad := [word for word in names if not word.isidentifier() and not word[:1].isdigit()]:
                raise ModuleUnfit(
                    name=name, why=f"it depends on {bad[0][:LONGEST_NAME]!r}, which is not a valid name of a module"
                )
            return names
    return []


def _section(module: bytes, wanted: bytes, name: str) -> bytes:
    """Return a section of a 64-bit ELF file, as the ELF specification lays it out; empty if it has none of that
    name.
    """
    if module[:6] != b"\x7fELF\x02\x01" or len(module) < 64:
        raise ModuleUnfit(name=name, why="it is not an ELF file of 64 bits")
    table, size, count, names = (*struct.unpack_from("<Q", module, 0x28), *struct.unpack_from("<HHH", module, 0x3A))
    if size < 64 or table + size * count > len(module) or names >= count:
        raise ModuleUnfit(name=name, why="it is cut short")
    headers = [struct.unpack_from("<IIQQQQ", module, table + size * number) for number in range(count)]
    texts = headers[names][4]
    for head in headers:
        at, start, length = texts + head[0], head[4], head[5]
        if module[at : at + len(wanted) + 1] == wanted + b"\0":
            if start + length > len(module):
                raise ModuleUnfit(name=name, why="it is cut short")
            return module[start : start + length]
    return b""
