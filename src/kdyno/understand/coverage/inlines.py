"""The inlined copy of a function that an instruction belongs to, identified by the calls of the inlining."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdyno.base import debuginfo
from kdyno.base.debuginfo import CodeFrame


def copies(addresses: Sequence[int], vmlinux: Path) -> list[int]:
    """Return a number for each address, equal for the instructions of one copy of a function.

    A copy has one innermost function that is inlined through the same calls. Raises what debuginfo.frames raises.
    """
    numbers: dict[tuple[str, tuple[CodeFrame, ...]], int] = {}
    return [
        numbers.setdefault((innermost.function, tuple(callers)), len(numbers))
        for innermost, *callers in debuginfo.frames(vmlinux, addresses)
    ]
