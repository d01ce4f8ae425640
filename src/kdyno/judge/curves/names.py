"""Names that end in a number of processes: `sieve.p4`, `make.j8`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdyno.judge.curves.model import Work
from kdyno.judge.stats.scaling.levels import LARGEST_N

WORK: Mapping[str, Work] = {"p": "copies", "j": "shared", "t": "shared"}
"""Processes that each do the whole work; jobs and threads, which share it."""


@dataclass(frozen=True)
class CountedName:
    """The parts of such a name."""

    stem: str
    work: Work
    n: int


def split_count(name: str) -> CountedName | None:
    """Return the parts of NAME.pN, NAME.jN or NAME.tN; None for any other name."""
    stem, _, end = name.rpartition(".")
    n = count(end[1:])
    return CountedName(stem, WORK[end[0]], n) if stem and n and end[0] in WORK else None


def count(text: str) -> int | None:
    """Return the number of processes in a text: digits without a leading zero, from 1 to 999,999."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(LARGEST_N)) and text[0] != "0"
    return int(text) if is_number else None
