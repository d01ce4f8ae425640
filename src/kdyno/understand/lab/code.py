"""The machine code of one function of an ELF file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kdyno.base import elf_listing, process
from kdyno.base.errors import UserError

SYMBOL = re.compile(r"([0-9a-f]{1,16}) ([0-9a-f]{1,16}) [tTwW] (\S+)")
ROW = re.compile(r" [0-9a-f]+ ((?:[0-9a-f]{2,8} ){1,4}) ?")
MOST_BYTES = 1 << 16
"""Bytes of a routine."""


class NoCode(UserError):
    message = "{file} has no function {symbol} of a known size"
    hint = "name an image whose kernel has it: `nm -S` lists the functions of a vmlinux"


@dataclass(frozen=True)
class FunctionCode:
    """A function as it is in the file: addresses that a linker fills in may be zeros in an object."""

    address: int
    content: bytes


def read_function(file: Path, symbol: str) -> FunctionCode:
    """Return the code of a function. Raises NoCode, ElfUnsound, ToolMissing and ToolFailed."""
    rows = map(SYMBOL.fullmatch, elf_listing.symbols(file).splitlines())
    places = {(int(row[1], 16), int(row[2], 16)) for row in rows if row and row[3] == symbol}
    if len(places) != 1:
        raise NoCode(file=file, symbol=symbol)
    [(address, size)] = places
    if not 0 < size <= MOST_BYTES:
        raise NoCode(file=file, symbol=symbol)
    span = (f"--start-address={address:#x}", f"--stop-address={address + size:#x}")
    listing = process.output(["objdump", "-s", *_section_option(file, symbol), *span, file])
    content = b"".join(bytes.fromhex(row[1].replace(" ", "")) for row in map(ROW.match, listing.splitlines()) if row)
    return FunctionCode(address, content[:size])


def _section_option(file: Path, symbol: str) -> tuple[str, ...]:
    """Return the option that names the function's section: sections of an object all begin at zero."""
    listing = process.output(["objdump", "-t", file])
    row = re.search(rf"^[0-9a-f]+ .{{7}} (\S+)\t[0-9a-f]+ (?:\.hidden )?{re.escape(symbol)}$", listing, re.MULTILINE)
    return ("-j", row[1]) if row else ()
