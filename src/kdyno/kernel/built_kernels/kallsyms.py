"""The symbols that a kernel keeps for its own messages (CONFIG_KALLSYMS), read from its vmlinux. Pure.

Distributions ship kernels without System.map and without a symbol table. The tables are those that scripts/kallsyms.c
of the kernel writes. Nothing records where they are, so they are found by their form: the tokens for the ten digits
are in a row, and each table records how long the next is. Tables that don't fit in any detail are not used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice

from kdyno.kernel.vmlinux.segments import Segment, segments

DIGITS = b"".join(bytes([code, 0]) for code in b"0123456789")
TOKENS = 256
FIRST_DIGIT = ord("0")
SYMBOLS_A_MARKER = 256
MOST_SYMBOLS = 1_000_000
MOST_TEXT = 64_000_000
"""Bytes of all names: each byte of a packed one stands for a token."""
MOST_TRIED = 64
"""Places that look like the beginning of a table."""
LONGEST_TOKEN = 512
"""KSYM_NAME_LEN of include/linux/kallsyms.h: nothing is longer."""
KERNEL_IMAGE = 0xFFFFFFFF80000000
"""__START_KERNEL_map: where x86-64 kernels are linked to (Documentation/arch/x86/x86_64/mm.rst)."""
TOP = 1 << 64
START = "_text"
FUNCTIONS = frozenset("tTwW")


@dataclass(frozen=True, slots=True)
class Kallsym:
    """A symbol: its address, its kind as `nm` has it, its name."""

    address: int
    kind: str
    name: str


@dataclass(frozen=True)
class _Tokens:
    """The table of tokens, and where it begins and its index ends."""

    texts: tuple[bytes, ...]
    start: int
    end: int


def system_map(vmlinux: bytes) -> str:
    """Return the functions and the marks around them in the form of System.map; empty if no tables can be found."""
    lines = (f"{symbol.address:016x} {symbol.kind} {symbol.name}\n" for symbol in kallsyms(vmlinux))
    return "".join(lines)


def kallsyms(vmlinux: bytes) -> list[Kallsym]:
    """Return the functions of the kernel image, in the order of their addresses; none if no tables can be found."""
    for tokens in islice(_token_tables(vmlinux), MOST_TRIED):
        for names_start, count in _names(vmlinux, tokens.start):
            names = _expanded(vmlinux, names_start, count, tokens)
            for base, addresses in _addresses(vmlinux, names_start, len(names), tokens.end):
                symbols = [
                    Kallsym(address, text[:1].decode("ascii", "replace"), text[1:].decode("ascii", "replace"))
                    for address, text in zip(addresses, names, strict=True)
                ]
                if _is_sound(symbols, base):
                    return [symbol for symbol in symbols if _is_function(symbol)]
    return []


def _is_function(symbol: Kallsym) -> bool:
    return symbol.kind in FUNCTIONS and symbol.address >= KERNEL_IMAGE and symbol.name.isprintable()


def _is_sound(symbols: list[Kallsym], base: int) -> bool:
    """Return whether the kernel begins with _text, which the base points to, and functions are sorted by address."""
    functions = [symbol.address for symbol in symbols if symbol.kind in FUNCTIONS]
    start = [symbol.address for symbol in symbols if symbol.name == START]
    return (
        start == [base]
        and KERNEL_IMAGE <= base < KERNEL_IMAGE + (1 << 30)
        and functions == sorted(functions)
        and functions[0] >= KERNEL_IMAGE
    )


def _token_tables(vmlinux: bytes) -> Iterator[_Tokens]:
    """Yield tables of 256 tokens, each followed by an index that fits them."""
    at = vmlinux.find(DIGITS)
    while at >= 0:
        start = _back(vmlinux, at, FIRST_DIGIT)
        if start is not None:
            texts, end = _texts(vmlinux, start)
            lengths = [len(text) + 1 for text in texts[:-1]]
            if len(texts) == TOKENS and sum(lengths) < 1 << 16:
                index = struct.pack(f"<{TOKENS}H", *accumulate(lengths, initial=0))
                if (place := vmlinux.find(index, end, end + len(index) + 16)) >= 0:
                    yield _Tokens(texts, start, place + len(index))
        at = vmlinux.find(DIGITS, at + 1)


def _back(vmlinux: bytes, at: int, count: int) -> int | None:
    """Return the position of the text that is so many texts before the one at `at`."""
    for _ in range(count):
        before = vmlinux.rfind(b"\0", max(0, at - 1 - LONGEST_TOKEN), at - 1)
        if before < 0:
            return None
        at = before + 1
    return at


def _texts(vmlinux: bytes, start: int) -> tuple[tuple[bytes, ...], int]:
    """Return the tokens from here on, and the end of the last; fewer than 256 if one is longer than any can be."""
    texts: list[bytes] = []
    at = start
    while len(texts) < TOKENS:
        end = vmlinux.find(b"\0", at, at + LONGEST_TOKEN)
        if end < 0:
            break
        texts.append(vmlinux[at:end])
        at = end + 1
    return tuple(texts), at


def _names(vmlinux: bytes, table: int) -> Iterator[tuple[int, int]]:
    """Yield where the packed names begin, and how many they are. They lie before their markers, and these before the
    tokens.

    Before the names stands their number, aligned to 4 or 8 bytes.
    """
    for markers_start, markers in islice(_markers(vmlinux, table), MOST_TRIED):
        fewest, most = SYMBOLS_A_MARKER * (len(markers) - 1) + 1, SYMBOLS_A_MARKER * len(markers)
        highest = markers_start - markers[-1]
        longest = SYMBOLS_A_MARKER * (LONGEST_TOKEN + 2) + 8
        for place in range(highest - highest % 4, max(16, highest - longest), -4):
            for gap in (4, 8):
                count = int.from_bytes(vmlinux[place - gap : place - gap + 4], "little")
                if fewest <= count <= most and _fits(vmlinux, place, markers, count, markers_start):
                    yield place, count


def _markers(vmlinux: bytes, table: int) -> Iterator[tuple[int, list[int]]]:
    """Yield rows of numbers of 4 bytes before the table of tokens that ascend from 0 as offsets of every 256th name do.

    Between them and the table may be the symbols' order by name (from 6.2 on, and in stable kernels of 6.1), 3 bytes
    each, which may look like one more number.
    """
    import numpy as np  # takes long to import, and only a kernel without other symbols needs it

    window = min(table, MOST_SYMBOLS * 4)
    first = table - window + (table - window) % 4
    numbers = np.frombuffer(vmlinux[first : table - (table - first) % 4], dtype="<u4").astype(np.int64)
    steps = np.diff(numbers)
    is_step = (steps >= 2 * SYMBOLS_A_MARKER) & (steps <= (LONGEST_TOKEN + 2) * SYMBOLS_A_MARKER)
    for index in np.flatnonzero((numbers[:-1] == 0) & is_step)[::-1]:
        ends = np.flatnonzero(~is_step[index:])
        length = int(ends[0]) + 1 if len(ends) else len(numbers) - int(index)
        for shorter in (0, 1):
            if length - shorter > 1:
                yield first + 4 * int(index), numbers[index : index + length - shorter].tolist()


def _fits(vmlinux: bytes, names: int, markers: list[int], count: int, end: int) -> bool:
    """Return whether every 256th name is where a marker says, and the last ends where the markers begin."""
    at = names
    for number in range(count):
        if number % SYMBOLS_A_MARKER == 0 and at - names != markers[number // SYMBOLS_A_MARKER]:
            return False
        length, head = _length(vmlinux, at)
        at += head + length
        if not length or at > end:
            return False
    return end - at < 8


def _length(vmlinux: bytes, at: int) -> tuple[int, int]:
    """Return the length of a packed name in bytes, and that of its length field: big names have a second byte since
    Linux 6.1.
    """
    first = vmlinux[at]
    return ((first & 0x7F) | (vmlinux[at + 1] << 7), 2) if first & 0x80 else (first, 1)


def _expanded(vmlinux: bytes, start: int, count: int, tokens: _Tokens) -> list[bytes]:
    """Return the names, each with its kind before it; none if they are more than any kernel's."""
    names = []
    at, size = start, 0
    for _ in range(count):
        length, head = _length(vmlinux, at)
        at += head
        names.append(b"".join([tokens.texts[code] for code in vmlinux[at : at + length]]))
        size += len(names[-1])
        if size > MOST_TEXT:
            return []
        at += length
    return names


def _addresses(vmlinux: bytes, names: int, count: int, after: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the base, and the addresses as they may be: offsets and their base lie before the names (to Linux 6.3) or
    after the tokens.

    Base and offsets make an address in one of two ways (CONFIG_KALLSYMS_ABSOLUTE_PERCPU). In newer kernels (7.1, not
    yet 6.19) each offset counts from its own place, and the base is where the kernel is linked to.
    """
    size = 4 * count
    ranges: list[tuple[int, int | None]] = [(_up(after, align), None) for align in (4, 8)]
    for number_at in (names - 4, names - 8):
        base_at = number_at - 8
        ranges += [(base_at - size - pad, base_at) for pad in (0, 4)]
    for start, known in ranges:
        base_at = known if known is not None else _up(start + size, 8)
        if start < 0 or base_at + 8 > len(vmlinux):
            continue
        offsets = struct.unpack_from(f"<{count}i", vmlinux, start)
        base = int.from_bytes(vmlinux[base_at : base_at + 8], "little")
        if KERNEL_IMAGE <= base < TOP:
            yield base, [offset if offset >= 0 else base - 1 - offset for offset in offsets]
            yield base, [base + (offset & 0xFFFFFFFF) for offset in offsets]
    start, loaded = _up(after, 4), _segments(vmlinux)
    for segment in loaded:
        if segment.start <= start and start + size <= min(segment.start + segment.size, len(vmlinux)):
            first = segment.address + start - segment.start
            offsets = struct.unpack_from(f"<{count}i", vmlinux, start)
            yield loaded[0].address, [first + 4 * number + offset for number, offset in enumerate(offsets)]


def _segments(vmlinux: bytes) -> list[Segment]:
    try:
        return segments(vmlinux)
    except (struct.error, OverflowError):
        return []


def _up(value: int, align: int) -> int:
    return -(-value // align) * align
