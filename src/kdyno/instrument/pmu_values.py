"""The numbers of a PMU record's body: LEB128, taken from front to back, never believed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DECODED_AT_ONCE = 1 << 16
"""Numbers: few enough to stay in the cache, which makes it four times as fast."""

Counts = NDArray[np.uint64]


class Unsound(ValueError):
    """What is wrong with a body."""


class Values:
    """The numbers of a body, taken from front to back."""

    def __init__(self, values: Counts) -> None:
        self.values = values
        self.place = 0

    def number(self, limit: int) -> int:
        value = int(self._take(1)[0])
        if value >= limit:
            raise Unsound(f"the number {value} is out of range")
        return value

    def count(self, columns: int) -> int:
        """How many rows follow; never more than there are numbers for."""
        rows = int(self._take(1)[0])
        if rows * columns > len(self.values) - self.place:
            raise Unsound("a list is longer than the body")
        return rows

    def table(self, columns: int) -> Counts:
        """A number of rows, and the rows."""
        rows = self.count(columns)
        return self._take(rows * columns).reshape(rows, columns)

    def expect_end(self) -> None:
        if self.place != len(self.values):
            raise Unsound("numbers follow its end")

    def _take(self, count: int) -> Counts:
        if self.place + count > len(self.values):
            raise Unsound("its numbers end too early")
        self.place += count
        return self.values[self.place - count : self.place]


def decode_varints(data: bytes) -> Counts:
    """All unsigned LEB128 numbers in `data`; raises Unsound if one is cut or exceeds 64 bits."""
    raw = np.frombuffer(data, np.uint8)
    last = np.flatnonzero(raw < 0x80)
    if len(raw) and (not len(last) or last[-1] != len(raw) - 1):
        raise Unsound("its last number is cut")
    first = np.concatenate((np.zeros(1, last.dtype), last + 1))[:-1]
    values = np.empty(len(last), np.uint64)
    for start in range(0, len(last), DECODED_AT_ONCE):
        part = slice(start, start + DECODED_AT_ONCE)
        values[part] = _decoded(raw, first[part], last[part] - first[part])
    return values


def _decoded(raw: NDArray[np.uint8], first: NDArray[np.int64], more: NDArray[np.int64]) -> Counts:
    """The numbers whose first bytes are at `first`, followed by `more` bytes each."""
    values = (raw[first] & 0x7F).astype(np.uint64)
    longer = np.flatnonzero(more)
    for byte in range(1, 11):
        if not len(longer):
            break
        part = (raw[first[longer] + byte] & 0x7F).astype(np.uint64)
        if byte == 10 or (byte == 9 and np.any(part > 1)):
            raise Unsound("a number exceeds 64 bits")
        values[longer] |= part << np.uint64(7 * byte)
        longer = longer[more[longer] > byte]
    return values


def unzigzag(values: Counts) -> Counts:
    """Signed numbers from 0, -1, 1, -2, ... as numbers modulo 2^64, ready to be added."""
    return (values >> np.uint64(1)) ^ (np.uint64(0) - (values & np.uint64(1)))
