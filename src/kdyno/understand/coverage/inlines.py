"""Which inlined copy of a function an instruction belongs to: the calls that it was inlined through."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdyno.base import debuginfo
from kdyno.base.debuginfo import CodeFrame


def copies(addresses: Sequence[int], vmlinux: Path) -> list[int]:
    """A number for each address, the same for instructions of one copy of a function: those of one innermost function
    that are inlined through the same calls. Raises what debuginfo.frames raises.
    """
    numbers: dict[tuple[str, tuple[CodeFrame, ...]], int] = {}
    return [
        numbers.setdefault((innermost.function, tuple(callers)), len(numbers))
        for innermost, *callers in debuginfo.frames(vmlinux, addresses)
    ]
