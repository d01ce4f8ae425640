"""The tables by which data/lab/rewrites/crc32c.c moves a sum over zeros.

A sum is linear in its bits: the sum of the parts of a text is the exclusive or of theirs, each moved over the zeros
that take the place of what follows it.
"""

from __future__ import annotations

POLYNOMIAL = 0x82F63B78
"""Castagnoli's polynomial, bits reversed (RFC 3720, section 12.1)."""
LONG_PART, SHORT_PART = 256, 64
"""The lengths of parts in bytes: multiples of 8."""


def move_over_zeros(value: int, count: int) -> int:
    """Return the sum after `count` bytes of zeros. Pure."""
    for _ in range(8 * count):
        value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
    return value


def tables_header() -> str:
    """Return the header with a table for each length of a part: by byte of the sum and its value. Pure."""
    parts = {"long_part": LONG_PART, "short_part": SHORT_PART}
    lines = [f"#define {name.upper()} {count}UL" for name, count in parts.items()]
    return "\n".join([*lines, *(_table(name, count) for name, count in parts.items())]) + "\n"


def _table(name: str, count: int) -> str:
    bits = [move_over_zeros(1 << bit, count) for bit in range(32)]
    rows = []
    for place in range(4):
        values = []
        for byte in range(256):
            value = 0
            for bit in range(8):
                value ^= bits[8 * place + bit] if byte >> bit & 1 else 0
            values.append(f"{value:#x}u")
        rows.append("{" + ", ".join(values) + "}")
    return f"static const u32 {name}[4][256] = {{{', '.join(rows)}}};"
