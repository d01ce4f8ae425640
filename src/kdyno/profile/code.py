"""Tells whether a function has the same code in two kernels, wherever linkers have put it and what it refers to.

No instruction is decoded. Where the bytes of two functions differ, the difference must lie in four bytes that lead to
the same place in both kernels, taken as a distance (of a call, a jump, or data relative to the instruction pointer) or
as an address: to the same symbol and offset; or, where there are no symbols, to the same string, or into the section of
tests that the kernel patches away when it boots. Anything else is other code. So two functions that are called the same
may, in theory, differ in a number that happens to lead to one place in both.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left, bisect_right
from collections import defaultdict
from pathlib import Path

from kdyno.base import elf_listing
from kdyno.kernel.vmlinux.checks import section_addresses, segments, vmlinux_bytes
from kdyno.measure.guest.symbols import Symbol, functions

FIELD = 4
"""Bytes of a distance, and of an address in the kernel's code model."""
IMMEDIATES = (0, 1, 2, 4)
"""Bytes of an instruction that may follow a distance: instructions count distances from their end."""
LONGEST_TEXT = 256
TESTS = ".altinstr_aux"
"""Section of the tests of CPU features that run until alternatives are patched (arch/x86/include/asm/cpufeature.h)."""
WORD = 1 << 64
LISTED = re.compile(r"^([0-9a-f]{16}) (?:([0-9a-f]{16}) )?[B-Zb-z] (\S+)$", re.MULTILINE)
"""All but constants (a), which stand for no place."""
NUMBERED = re.compile(r"\.\d{1,20}(?=\.|$)")
"""The suffix that compilers add to static variables of one name: another number in each build."""


class Code:
    """The functions of a vmlinux and what their code can lead to."""

    def __init__(self, vmlinux: Path) -> None:
        self._data = vmlinux_bytes(vmlinux)
        self._segments = segments(self._data, vmlinux)
        self._tests = section_addresses(self._data, TESTS, vmlinux) or range(0)
        listing = elf_listing.symbols(vmlinux)
        self.functions: dict[str, list[Symbol]] = defaultdict(list)
        for symbol in functions(listing, vmlinux, lowest=0):  # a kernel that is a process (ARCH=um) lies low
            self.functions[symbol.name].append(symbol)
        names: dict[int, set[str]] = defaultdict(set)
        sizes: dict[int, int] = defaultdict(int)
        for start, size, name in LISTED.findall(listing):
            names[int(start, 16)].add(NUMBERED.sub("", name))
            sizes[int(start, 16)] = max(sizes[int(start, 16)], int(size or "0", 16))
        self._starts = sorted(names)
        self._names = names
        self._sizes = sizes

    def at(self, address: int, size: int) -> bytes:
        """The bytes at an address; empty if the file hasn't all of them."""
        for _, offset, start, _, length in self._segments:
            if start <= address and address + size <= start + length:
                return self._data[offset + address - start : offset + address - start + size]
        return b""

    def place(self, address: int) -> tuple[set[str], int]:
        """The names of the symbol that an address is in, and how far; no name if it is in none."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return set(), address
        start = self._starts[index]
        offset = address - start
        return (self._names[start], offset) if offset < max(self._sizes[start], 1) else (set(), address)

    def is_test(self, address: int) -> bool:
        """Return whether a test of CPU features that is patched away lies there."""
        return address in self._tests

    def text(self, address: int) -> bytes:
        """The string at an address, as C has them; empty if there is none."""
        for _, offset, start, _, length in self._segments:
            if start <= address < start + length:
                first = offset + address - start
                end = self._data.find(b"\0", first, min(first + LONGEST_TEXT, offset + length))
                return self._data[first:end] if end >= 0 else b""
        return b""


def same_code(old: Code, function: Symbol, new: Code, candidate: Symbol) -> bool:
    """Return whether two functions of one size have the same code, by the rules of this module."""
    ours, theirs = old.at(function.address, function.size), new.at(candidate.address, candidate.size)
    if not ours or len(ours) != len(theirs):
        return False
    differences = [place for place, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other]
    accounted = {0}  # places up to which all differences may be accounted for: fields may begin before a difference
    while accounted:
        done = min(accounted)
        accounted.remove(done)
        index = bisect_left(differences, done)
        if index == len(differences):
            return True
        first = differences[index]
        fields = range(max(done, first - FIELD + 1), min(first, len(ours) - FIELD) + 1)
        accounted |= {
            start + FIELD for start in fields if _leads_alike(old, function, new, candidate, ours, theirs, start)
        }
    return False


def _leads_alike(
    old: Code, function: Symbol, new: Code, candidate: Symbol, ours: bytes, theirs: bytes, start: int
) -> bool:
    """Return whether the field at `start` leads to one place in both kernels."""
    (mine,) = struct.unpack_from("<i", ours, start)
    (other,) = struct.unpack_from("<i", theirs, start)
    behind = start + FIELD
    pairs = [
        (function.address + behind + more + mine, candidate.address + behind + more + other) for more in IMMEDIATES
    ]
    return any(_alike(old, one % WORD, new, another % WORD) for one, another in [*pairs, (mine, other)])


def _alike(old: Code, one: int, new: Code, another: int) -> bool:
    if old.is_test(one):
        return new.is_test(another)
    (names, offset), (other_names, other_offset) = old.place(one), new.place(another)
    if names or other_names:
        return offset == other_offset and not names.isdisjoint(other_names)
    text = old.text(one)
    return text != b"" and text == new.text(another)
