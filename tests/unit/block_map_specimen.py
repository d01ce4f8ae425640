"""Listings as llvm-readobj --bb-addr-map prints them, of functions that tests make up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Block = tuple[int, int, int, bool]
"""Id, offset, size, whether control may go on to the next."""


def listing(functions: Mapping[int, Sequence[tuple[int, Sequence[Block]]]]) -> str:
    """By address of the function: its ranges, each with its address and its blocks."""
    return "BBAddrMap [\n" + "".join(_function(at, ranges) for at, ranges in functions.items()) + "]\n"


def _function(at: int, ranges: Sequence[tuple[int, Sequence[Block]]]) -> str:
    parts = "".join(map(_range, ranges))
    return f"  Function {{\n    At: 0x{at:X}\n    Name: f\n    BB Ranges [\n{parts}    ]\n  }}\n"


def _range(part: tuple[int, Sequence[Block]]) -> str:
    base, blocks = part
    entries = "".join(map(_block, blocks))
    return f"      {{\n        Base Address: 0x{base:X}\n        BB Entries [\n{entries}        ]\n      }}\n"


def _block(block: Block) -> str:
    number, offset, size, falls = block
    words = [f"ID: {number}", f"Offset: 0x{offset:X}", f"Size: 0x{size:X}", "HasReturn: No", "HasTailCall: No"]
    words += ["IsEHPad: No", f"CanFallThrough: {'Yes' if falls else 'No'}", "HasIndirectBranch: No"]
    return "          {\n" + "".join(f"            {word}\n" for word in words) + "          }\n"
