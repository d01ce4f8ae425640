"""The text of a vmlinux as a linker sees it: units that an order can move, and code that keeps its place.

A unit is the content of one section: a function with the padding before it (`__pfx_`, as scripts/link-vmlinux.sh and
objtool name it), or a part that the compiler split off (`.cold`, `.__part.N`). A vmlinux doesn't contain its input
sections. `-ffunction-sections` gives each function its own section; assembly code has none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from kdyno.base import elf_listing
from kdyno.kernel.vmlinux.sources import NOWHERE, Sources, read_sources
from kdyno.measure.guest.symbols import LINE, Symbol

Kind = Literal["movable", "staying", "behind", "fixed"]
KINDS: tuple[Kind, ...] = ("movable", "staying", "behind", "fixed")
"""The kinds of units, as crates/layout numbers them (job.rs, Kind)."""

PADDING = re.compile(r"__(?:pfx|cfi)_(?P<name>.+)")
PART = re.compile(r"\.(?:cold|__part\.\d+)(?:$|\.)")
"""The suffixes of parts that a compiler splits off, and doesn't align."""
ALIGN = 16
"""The alignment of functions in bytes: CONFIG_FUNCTION_ALIGNMENT of x86-64."""
HEAD = re.compile(r"arch/x86/(?:kernel/head|platform/pvh/|coco/|mm/mem_encrypt|boot/startup/)")
"""The files whose code comes first (.head.text)."""
BEHIND = ("__noinstr_text_start", "__sched_text_start", "__lock_text_start")
FIXED = ("__entry_text_start", "_etext")
"""Symbols of the linker script. Code after one of the first stays after the functions; from one of the second on
addresses are unchanged (they are aligned to a page or more)."""


class Text(NamedTuple):
    units: list[OrderUnit]
    """The units in the order of addresses, without overlaps."""
    base: int
    """The address of the first unit that can be moved, or is among movable units."""


@dataclass(frozen=True)
class OrderUnit:
    name: str
    """The name of the function, as in an order."""
    start: int
    end: int
    align: int
    kind: Kind


def text_of_vmlinux(vmlinux: Path) -> Text:
    """Read the text of a vmlinux with line tables. Raises what elf_listing.symbols and read_sources raise."""
    return text_of(elf_listing.symbols(vmlinux), read_sources(vmlinux))


def text_of(listing: str, sources: Sources) -> Text:
    """Build the text from the listing of `nm -S` and the file of each address. Pure."""
    symbols = [
        Symbol(int(address, 16), int(size or "0", 16), name, kind != "t")
        for address, size, kind, name in LINE.findall(listing)
    ]
    marks = {symbol.name: symbol.address for symbol in symbols if not symbol.size}
    behind = min((marks[name] for name in BEHIND if name in marks), default=marks.get("_etext", 0))
    fixed = min((marks[name] for name in FIXED if name in marks), default=0)
    inside = [symbol for symbol in symbols if symbol.size and marks.get("_text", 0) <= symbol.address < fixed]
    units = []
    in_head = True
    functions = _function_units(sorted(inside, key=attrgetter("address")))
    files = sources.files(np.array([unit.end - 1 for unit in functions], np.uint64))
    for unit, file in zip(functions, files, strict=True):
        in_head = in_head and (file == NOWHERE or bool(HEAD.match(file)))
        units.append(replace(unit, kind=_kind(unit, file, behind, in_head=in_head)))
    units = _join_assembly(_add_nameless(units))
    names = Counter(unit.name for unit in units if unit.kind == "movable")
    units = [replace(unit, kind="staying") if names[unit.name] > 1 else unit for unit in units]
    base = min((unit.start for unit in units if unit.kind in ("movable", "staying")), default=fixed)
    return Text(units, base)


def _kind(unit: OrderUnit, file: str, behind: int, *, in_head: bool) -> Kind:
    if in_head:
        return "fixed"
    if unit.start >= behind:
        return "behind"
    return "staying" if file == NOWHERE or file.endswith(".S") else "movable"


def _function_units(symbols: Sequence[Symbol]) -> list[OrderUnit]:
    """Return a unit for each function with its padding. Of several names of one address a global one is used."""
    units: list[OrderUnit] = []
    padded: dict[str, int] = {}
    for _, aliases in groupby(symbols, key=attrgetter("address")):
        those = list(aliases)
        for symbol in those:
            if padding := PADDING.fullmatch(symbol.name):
                padded[padding["name"]] = symbol.address
        functions = [symbol for symbol in those if not PADDING.fullmatch(symbol.name)]
        if not functions or (units and functions[0].address < units[-1].end):
            continue
        best = min(functions, key=lambda symbol: (not symbol.is_global, symbol.name.count("."), symbol.name))
        start = min(padded.get(symbol.name, symbol.address) for symbol in functions)
        if units and start < units[-1].end:
            start = best.address
        end = best.address + max(symbol.size for symbol in functions)
        units.append(OrderUnit(best.name, start, end, 1 if PART.search(best.name) else ALIGN, "movable"))
    return units


def _add_nameless(units: Sequence[OrderUnit]) -> list[OrderUnit]:
    """Add immovable units for code between functions without a symbol, as of overridden weak functions."""
    filled: list[OrderUnit] = []
    for unit in units:
        if filled and filled[-1].kind != "fixed" and unit.kind in ("movable", "staying"):
            end = -(-filled[-1].end // unit.align) * unit.align
            if end < unit.start:
                filled.append(OrderUnit("", end, unit.start, 1, "staying"))
        filled.append(unit)
    return filled


def _join_assembly(units: Sequence[OrderUnit]) -> list[OrderUnit]:
    """Join adjacent assembly code into one unit: it is one section, or can be treated as one."""
    joined: list[OrderUnit] = []
    for unit in units:
        if joined and unit.kind == joined[-1].kind == "staying":
            joined[-1] = replace(joined[-1], end=unit.end)
        else:
            joined.append(unit)
    return joined
