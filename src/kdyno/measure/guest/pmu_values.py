"""The numbers of a PMU record's body: LEB128, taken from front to back, never trusted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kdyno.measure.guest.pmu_limits import Unsound

DECODED_AT_ONCE = 1 << 16
"""Bytes: few enough to stay in the cache, which makes it four times as fast."""
LONGEST = 10
"""Bytes of a number of 64 bits."""

Counts = NDArray[np.uint64]


class Values:
    """The numbers and names of a body, taken from front to back. Only requested numbers are decoded."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.place = 0

    def number(self, limit: int = 1 << 64) -> int:
        value = shift = 0
        for place in range(self.place, min(self.place + LONGEST, len(self.body))):
            byte = self.body[place]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                self.place = place + 1
                if value >= limit:
                    raise Unsound(f"the number {value} is out of range")
                return value
        raise Unsound("its numbers end too early" if shift < 7 * LONGEST else "a number exceeds 64 bits")

    def text(self, most: int) -> str:
        """Take the length of a text, and return the text."""
        length = self.number()
        if length > most:
            raise Unsound(f"a name is longer than {most} bytes")
        encoded = self.body[self.place : self.place + length]
        if len(encoded) < length:
            raise Unsound("it ends within a name")
        self.place += length
        return encoded.decode(errors="replace")

    def count(self, columns: int) -> int:
        """Take and return the number of rows that follow; never more than there are bytes for."""
        rows = self.number()
        if rows * columns > len(self.body) - self.place:
            raise Unsound("a list is longer than the body")
        return rows

    def rows(self, rows: int, columns: int) -> Counts:
        values = np.empty(rows * columns, np.uint64)
        done = 0
        while done < len(values):
            most = len(values) - done
            part = self.body[self.place : self.place + min(DECODED_AT_ONCE, LONGEST * most)]
            decoded, taken = decode_varints(part, most)
            values[done : done + len(decoded)] = decoded
            done += len(decoded)
            self.place += taken
        return values.reshape(rows, columns)

    def expect_end(self) -> None:
        if self.place != len(self.body):
            raise Unsound("numbers follow its end")


def decode_varints(data: bytes, most: int) -> tuple[Counts, int]:
    """Return the unsigned LEB128 numbers that `data` begins with, at least one, and the number of bytes that they take.

    Raise Unsound if the first one is cut, or if one exceeds 64 bits.
    """
    raw = np.frombuffer(data, np.uint8)
    last = np.flatnonzero(raw < 0x80)[:most]
    if not len(last):
        raise Unsound("its numbers end too early" if len(raw) < LONGEST else "a number exceeds 64 bits")
    first = np.concatenate((np.zeros(1, last.dtype), last[:-1] + 1))
    more = last - first
    values = (raw[first] & 0x7F).astype(np.uint64)
    longer = np.flatnonzero(more)
    for byte in range(1, LONGEST + 1):
        if not len(longer):
            break
        part = (raw[first[longer] + byte] & 0x7F).astype(np.uint64)
        if byte == LONGEST or (byte == LONGEST - 1 and np.any(part > 1)):
            raise Unsound("a number exceeds 64 bits")
        values[longer] |= part << np.uint64(7 * byte)
        longer = longer[more[longer] > byte]
    return values, int(last[-1]) + 1


def encode_varints(values: Counts) -> bytes:
    """Return numbers as unsigned LEB128, which `decode_varints` decodes."""
    lengths = np.ones(len(values), np.int64)
    for byte in range(1, LONGEST):
        lengths += values >= np.uint64(1 << 7 * byte)
    ends = np.cumsum(lengths)
    encoded = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    for byte in range(LONGEST):
        longer = np.flatnonzero(lengths > byte)
        part = (values[longer] >> np.uint64(7 * byte)).astype(np.uint8) & 0x7F
        more = (lengths[longer] > byte + 1).astype(np.uint8) << 7
        encoded[ends[longer] - lengths[longer] + byte] = part | more
    return encoded.tobytes()


def zigzag(differences: Counts) -> Counts:
    """Return signed numbers modulo 2^64 as 0, -1, 1, -2, ...: `unzigzag` is the inverse."""
    negative = np.uint64(0) - (differences >> np.uint64(63))
    return (differences << np.uint64(1)) ^ negative


def unzigzag(values: Counts) -> Counts:
    """Return numbers modulo 2^64, ready to be added, from signed numbers as 0, -1, 1, -2, ..."""
    return (values >> np.uint64(1)) ^ (np.uint64(0) - (values & np.uint64(1)))
