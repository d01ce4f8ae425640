"""The basic blocks of a vmlinux, by the map that clang -fbasic-block-address-map leaves in it.

llvm-readobj reads the map; its format is in LLVM's docs/Extensions.rst, "SHT_LLVM_BB_ADDR_MAP". A block has an id,
which is what a cluster file names it by. Functions that are split already have their blocks in several ranges.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.base import elf_listing
from kdyno.base.errors import UserError
from kdyno.base.llvm_tools import MOST_LISTED, find_tool
from kdyno.base.process import attempt, failure
from kdyno.measure.guest.symbols import LINE

BLOCK = np.dtype([("start", "<u8"), ("size", "<u4"), ("id", "<u4"), ("function", "<u4"), ("falls", "?")])
"""`function` is an index, and `falls` says whether control may go on to the next block without a jump."""

PART = re.compile(
    r"^ {4}At: 0x(?P<function>[0-9A-F]{1,16})$"
    r"|^ {8}Base Address: 0x(?P<base>[0-9A-F]{1,16})$"
    r"|^ {12}ID: (?P<id>\d{1,10})\n {12}Offset: 0x(?P<offset>[0-9A-F]{1,8})\n {12}Size: 0x(?P<size>[0-9A-F]{1,8})\n"
    r"(?: {12}(?:HasReturn|HasTailCall|IsEHPad): \w{2,3}\n){0,3} {12}CanFallThrough: (?P<falls>Yes|No)$",
    re.MULTILINE,
)
OTHER_VERSION = re.compile(r"unsupported SHT_LLVM_BB_ADDR_MAP version: (\d{1,9})")
UNREADABLE = re.compile(r"unable to (dump|get) .{1,200}")
"""Other warnings are harmless: functions without a symbol."""
APART = re.compile(r"__(?!hot_|unlikely_)(\w+_text)_(start|end)|_(s|e)inittext")
"""Marks of the linker script around code with a place of its own: entry code, noinstr, sched, ..."""


class NoBlockMap(UserError):
    message = "vmlinux {vmlinux} has no map of its basic blocks"
    hint = (
        "record a kernel that clang 19 or newer built with -fbasic-block-address-map; "
        "with ThinLTO the linker makes the map: ld.lld --lto-basic-block-address-map"
    )


class OtherBlockMapVersion(UserError):
    message = "{tool} doesn't know version {version} of the map of basic blocks in {vmlinux}"
    hint = "install the llvm of the release of the clang that built it"


class BlockMapDamaged(UserError):
    message = "{tool} can't read the map of basic blocks in {vmlinux}: {why}"
    hint = "build that kernel again"


@dataclass(frozen=True, eq=False)
class BasicBlockMap:
    """All blocks; `functions` are their entries."""

    functions: NDArray[Any]
    """Address of each."""
    blocks: NDArray[Any]
    """Of dtype BLOCK, by address; of blocks that start together the empty ones first."""


def read_block_map(vmlinux: Path) -> BasicBlockMap:
    """Raises NoBlockMap, OtherBlockMapVersion, BlockMapDamaged, LlvmToolMissing and ToolFailed."""
    tool = find_tool("llvm-readobj")
    words: list[str | Path] = [tool, "--bb-addr-map", vmlinux]
    done = attempt(words, most=MOST_LISTED)
    if version := OTHER_VERSION.search(done.stderr):
        raise OtherBlockMapVersion(tool=tool, version=version[1], vmlinux=vmlinux)
    if done.returncode != 0:
        raise failure(words, done.returncode, done.stderr)
    if complaint := UNREADABLE.search(done.stderr):
        raise BlockMapDamaged(tool=tool, vmlinux=vmlinux, why=complaint[0])
    blocks = parse(done.stdout)
    if not len(blocks.functions):
        raise NoBlockMap(vmlinux=vmlinux)
    return blocks


def parse(listing: str) -> BasicBlockMap:
    """What `llvm-readobj --bb-addr-map` prints. Pure."""
    functions: list[int] = []
    blocks: list[tuple[int, int, int, int, bool]] = []
    base = 0
    for part in PART.finditer(listing):
        function, start, number, offset, size, falls = part.groups()
        if function:
            functions.append(int(function, 16))
        elif start:
            base = int(start, 16)
        elif functions and base + int(offset, 16) < 1 << 64:
            place = base + int(offset, 16)
            blocks.append((place, int(size, 16), int(number) % (1 << 32), len(functions) - 1, falls == "Yes"))
    rows = np.array(blocks, BLOCK)
    return BasicBlockMap(np.array(functions, np.uint64), rows[np.lexsort((rows["size"], rows["start"]))])


class Names:
    """The names of the functions of a vmlinux, and which code must stay where it is."""

    def __init__(self, listing: str) -> None:
        """`listing` is what `nm -S` prints."""
        self._by_address: dict[int, set[str]] = {}
        self._addresses: dict[str, set[int]] = {}
        marks: dict[str, dict[str, int]] = {}
        for text, _size, _kind, name in LINE.findall(listing):
            address = int(text, 16)
            if mark := APART.fullmatch(name):
                is_start = "start" in (mark[2] or "") or mark[3] == "s"
                marks.setdefault(mark[1] or "init", {})["start" if is_start else "end"] = address
            else:
                self._by_address.setdefault(address, set()).add(name)
                self._addresses.setdefault(name, set()).add(address)
        self._apart = [(mark["start"], mark["end"]) for mark in marks.values() if len(mark) == 2]

    def at(self, address: int) -> tuple[str, ...]:
        """All names of the function that starts there: its own and its aliases; sorted."""
        return tuple(sorted(self._by_address.get(address, ())))

    def is_one(self, name: str) -> bool:
        """Whether only one function has this name."""
        return len(self._addresses.get(name, ())) == 1

    def is_apart(self, address: int) -> bool:
        """Whether it is code with a place of its own: .entry.text, .noinstr.text, .sched.text, .init.text, ..."""
        return any(start <= address < end for start, end in self._apart)


def read_names(vmlinux: Path) -> Names:
    return Names(elf_listing.symbols(vmlinux))
