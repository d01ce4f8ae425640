"""The routines of a built kernel as objects for the prover: their own bytes, with those of functions that they call.

A call or jump out of a function is aimed at the copy of its target; all other bytes are those of the image. Functions
that a short jump can reach keep their distance. Their entries of the exception table are copied, too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kdyno.base import elf_listing, process
from kdyno.understand.lab.exception_table import read_exception_table, table_lines

SYMBOL = re.compile(r"([0-9a-f]{1,16}) ([0-9a-f]{1,16}) [tTwW] (\S+)")
INSTRUCTION = re.compile(r"([0-9a-f]{1,16}):\t((?:[0-9a-f]{2} ){1,16}) *(?:\t(.*))?")
BRANCH = re.compile(r"(?:call|jmp|j[a-z]{1,3})q? +(?:0x)?([0-9a-f]{1,16}) <")
DATA = re.compile(r"\(%rip\)|(?:^|[ ,*])0x[0-9a-f]{6,16}\(")
"""An operand in memory at an address of its own, which a copy can't have."""
RETURN_THUNK, TRACER = "__x86_return_thunk", "__fentry__"
PADDING = 0xCC
"""int3, which no routine may reach."""
RETURN, NOTHING = b"\xc3\xcc\xcc\xcc\xcc", b"\x0f\x1f\x44\x00\x00"
"""`ret; int3 ...` and a `nop` of the five bytes of a jump or a call."""
MOST_FUNCTIONS = 32
NEAR = 128
"""Bytes between two functions that keep their distance: the reach of a short jump."""
MOST_BYTES = 1 << 16
"""Bytes of one function."""


class CodeUnfit(Exception):
    """A routine of an image that can't be proven alone; the message says why."""


@dataclass(frozen=True)
class ImageFunction:
    """A function of an image."""

    name: str
    address: int
    size: int


class ImageFunctions:
    """The functions of a vmlinux. Raises ElfUnsound, ToolMissing and ToolFailed."""

    def __init__(self, vmlinux: Path) -> None:
        self.vmlinux = vmlinux
        rows = map(SYMBOL.fullmatch, elf_listing.symbols(vmlinux).splitlines())
        self.rows = sorted(
            (ImageFunction(row[3], int(row[1], 16), int(row[2], 16)) for row in rows if row),
            key=lambda row: row.address,
        )
        self.addresses = [row.address for row in self.rows]
        self.recoveries = read_exception_table(vmlinux)

    def named(self, name: str) -> ImageFunction:
        """Return the function of a name. Raises CodeUnfit unless there is one."""
        rows = {(row.address, row.size): row for row in self.rows if row.name == name}
        if len(rows) != 1:
            raise CodeUnfit(f"the image has {len(rows)} functions {name}")
        return next(iter(rows.values()))

    def at(self, address: int) -> ImageFunction:
        """Return the function that begins at an address. Raises CodeUnfit."""
        place = bisect_right(self.addresses, address) - 1
        if place < 0 or self.rows[place].address != address:
            raise CodeUnfit(f"it jumps to {address:#x}, where no function begins")
        return self.rows[place]


def routine_source(functions: ImageFunctions, entry: str, symbol: str) -> str:
    """Return assembler that makes the bytes of a routine and of all that it calls, under a new symbol.

    Raises CodeUnfit if it refers to data, is too large or jumps into the middle of another function.
    """
    pending = [functions.named(entry)]
    done: dict[ImageFunction, list[str]] = {}
    while pending:
        function = pending.pop()
        if function in done:
            continue
        if len(done) == MOST_FUNCTIONS:
            raise CodeUnfit(f"it calls more than {MOST_FUNCTIONS} functions")
        if not 0 < function.size <= MOST_BYTES:
            raise CodeUnfit(f"{function.name} has {function.size:,} bytes")
        done[function], targets = _copy(functions, function)
        pending += targets
    alias = [f".globl {symbol}", f".set {symbol}, {_label(functions.named(entry).address)}"]
    places = [(function.address, function.address + function.size, _label(function.address)) for function in done]
    table = table_lines(functions.recoveries, places)
    lines = [".text", *alias, *_laid_out(done), *table, '.section .note.GNU-stack,"",@progbits']
    return "".join(f"{line}\n" for line in lines)


def _laid_out(copies: Mapping[ImageFunction, list[str]]) -> Iterator[str]:
    """Yield the lines of all functions, by address. Raises CodeUnfit if two of them overlap."""
    end = None
    for function in sorted(copies, key=lambda function: function.address):
        gap = None if end is None else function.address - end
        if gap is not None and gap < 0:
            raise CodeUnfit(f"{function.name} begins within another function")
        yield ".p2align 4" if gap is None or gap > NEAR else f".skip {gap}, {PADDING:#x}"
        yield f"{_label(function.address)}:"
        yield from copies[function]
        end = function.address + function.size


def _label(address: int) -> str:
    return f"image_{address:x}"


def _copy(functions: ImageFunctions, function: ImageFunction) -> tuple[list[str], list[ImageFunction]]:
    """Return the lines of one function, and the functions that it calls."""
    lines, targets = list[str](), list[ImageFunction]()
    for content, text, target in _instructions(functions.vmlinux, function):
        if DATA.search(text):
            raise CodeUnfit(f"{function.name} refers to data: {text}")
        if target is None or function.address <= target < function.address + function.size:
            lines.append(_bytes(content))
            continue
        called = functions.at(target)
        if called.name == RETURN_THUNK and content[0] == 0xE9:
            lines.append(_bytes(RETURN))
        elif called.name == TRACER and content[0] == 0xE8:
            lines.append(_bytes(NOTHING))
        elif len(content) == 2:  # a short jump: its target keeps its distance
            lines.append(_bytes(content))
            targets.append(called)
        elif len(content) in (5, 6):
            lines += [_bytes(content[:-4]), f".long {_label(called.address)} - . - 4"]
            targets.append(called)
        else:
            raise CodeUnfit(f"{function.name} jumps to {called.name} by an instruction of {len(content)} bytes")
    return lines, targets


def _instructions(vmlinux: Path, function: ImageFunction) -> Iterator[tuple[bytes, str, int | None]]:
    """Yield the bytes, the text and the target of each instruction; None if it names no address."""
    span = (f"--start-address={function.address:#x}", f"--stop-address={function.address + function.size:#x}")
    listing = process.output(["objdump", "-d", "-w", *span, vmlinux])
    for line in listing.splitlines():
        if row := INSTRUCTION.fullmatch(line.strip()):
            text = row[3] or ""
            branch = BRANCH.match(text)
            yield bytes.fromhex(row[2].replace(" ", "")), text, int(branch[1], 16) if branch else None


def _bytes(content: bytes) -> str:
    return f".byte {', '.join(f'{value:#04x}' for value in content)}"
