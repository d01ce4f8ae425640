"""Counters of gcc's in files `.gcda`, as a kernel with CONFIG_GCOV_KERNEL has them under /sys/kernel/debug/gcov.

The format is that of gcc/gcov-io.h and libgcc/libgcov-driver.c of gcc 12, and of the kernel's kernel/gcov/gcc_4_7.c.
All numbers are 32-bit words, lowest byte first; a counter is two of them, the low one first:

    file:      magic version stamp checksum [summary] function... [0]
    summary:   0xa1000000 8 runs sum_max
    function:  0x01000000 12 ident lineno_checksum cfg_checksum, then 0x01a10000 LENGTH counter...

LENGTH is in bytes since gcc 12, and negative where all counters are 0, which then aren't there. A kernel writes neither
summary nor 0 at the end, and all counters. gcc 13 to 16 write the same with another version; they know more kinds of
counters (conditions, paths), which a kernel has only if it asks for them.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from kdyno.base.errors import UserError

MAGIC = b"adcg"
OTHER_ENDIAN = b"gcda"
SUMMARY, FUNCTION, ARCS = 0xA1000000, 0x01000000, 0x01A10000
KINDS = {
    ARCS + (number << 17): name
    for number, name in enumerate(
        ("arcs", "interval", "pow2", "topn", "indirect_call", "average", "ior", "time_profiler", "conditions", "paths")
    )
}
"""Tags of counters: gcc/gcov-counter.def."""
OLDEST, NEWEST = 12, 16
"""Releases of gcc that write this format. Before 12 lengths are in words, and there is no checksum."""
VERSION = re.compile(r"[A-Z][0-9][0-9][ -~]")
MOST_COUNTERS = 1 << 20
"""In one file: records of zeros take no bytes, so that a short file may claim any number. The largest of Linux 6.12 in
kdyno's configuration has 4,024 (kernel/events/core)."""
MOST_FUNCTIONS = 1 << 17
"""In one file."""
MOST_IN_ALL = 1 << 22
"""Counters in all objects of a kernel, which are in memory together. Linux 6.12 in kdyno's configuration has 189,756
of them."""
OVERHEAD = 8
"""A function, and a file without its name, take as much memory as so many counters; so do 8 bytes of a name as one."""
LARGEST_COUNT = 2**63 - 1
WORD = 2**32


class NotGcda(UserError):
    message = "{name} is no .gcda file of gcc's: {why}"
    hint = "a kernel with CONFIG_GCOV_KERNEL has them under /sys/kernel/debug/gcov"


class GcdaDamaged(UserError):
    message = "{name} is damaged: {why}"
    hint = "copy it again, or train again; a file that was cut short or edited can't be mended"


class OtherGcda(UserError):
    message = "{name} was counted by code of gcc {version}, and only files of gcc {oldest} to {newest} can be read"
    hint = "build the kernel with one of these"


class OtherKindOfCounters(UserError):
    message = "{name} has counters of the kind {kind}, which don't add up as those of arcs do"
    hint = "compile with -fprofile-arcs, as GCOV_KERNEL does, and not with -fprofile-generate"


class NoSummary(UserError):
    message = "{name} has no object summary: gcc would find nothing hot in it"
    hint = "train with kdyno, which completes what kernels write"


@dataclass(frozen=True, slots=True)
class GcovFunction:
    """A function, and how often each of its instrumented arcs was taken."""

    ident: int
    """Its number, by which gcc finds it: of its name, the same in every build."""
    lineno_checksum: int
    """Of its file, line and name."""
    cfg_checksum: int
    """Of its control flow: where it differs, gcc takes no counts."""
    arcs: tuple[int, ...]


@dataclass(frozen=True)
class GcovFile:
    """The counters of one object."""

    version: str
    """Of gcc, as in the header: `B22*` is 12.2."""
    stamp: int
    """Of the compile: objects that were compiled twice differ here."""
    functions: tuple[GcovFunction, ...]
    summary: tuple[int, int] | None = None
    """Runs, and the sum of each run's largest counter; a kernel's files have none."""
    checksum: int = 0
    """Of the source file; a kernel writes 0, and gcc ignores it."""
    name: str = field(default="", compare=False)
    """For messages."""


class CounterAllowance:
    """What may still be kept of the counters of many files."""

    def __init__(self, most: int = MOST_IN_ALL) -> None:
        self._most = self._left = most

    def take(self, file: GcovFile) -> None:
        """Count one file more. Raises GcdaDamaged if the files are more than any kernel has."""
        self._left -= OVERHEAD + len(file.name) // 8
        self._left -= sum(OVERHEAD + len(function.arcs) for function in file.functions)
        if self._left < 0:
            raise GcdaDamaged(name=file.name, why=f"with those before, it claims more than {self._most:,} counters")


def compiler_of(version: str) -> str:
    """The version of gcc that a header's says: `12.2` for `B22*`, from gcc/gcov-io.h. The last letter is `*` for a
    release, also in Debian.
    """
    return f"{(ord(version[0]) - ord('A')) * 10 + int(version[1])}.{version[2]}"


def read_gcda(content: bytes, name: str) -> GcovFile:
    """The file's counters, in time in proportion to its length.

    Functions that another object has (length 0) are left out. Raises NotGcda, GcdaDamaged, OtherGcda and
    OtherKindOfCounters. A kernel's file that is cut between two functions looks whole: the number of its functions, in
    another snapshot, tells.
    """
    reader = _Reader(content, name)
    version, stamp, checksum = reader.header()
    summary: tuple[int, int] | None = None
    functions: list[GcovFunction] = []
    counters = 0
    while (tag := reader.tag()) != 0:
        length = reader.length()
        if tag == SUMMARY and not functions and summary is None and length == 8:
            runs, sum_max = reader.words(2)
            summary = runs, sum_max
        elif tag == FUNCTION and length == 12:
            ident, lineno_checksum, cfg_checksum = reader.words(3)
            arcs = reader.arcs(MOST_COUNTERS - counters)
            counters += len(arcs)
            if len(functions) == MOST_FUNCTIONS:
                raise reader.damaged(f"it claims more than {MOST_FUNCTIONS:,} functions")
            functions.append(GcovFunction(ident, lineno_checksum, cfg_checksum, arcs))
        elif tag != FUNCTION or length != 0:
            raise reader.damaged(f"there is an odd record {tag:#010x} of length {length} at byte {reader.place - 8}")
    reader.end(whole=summary is not None)
    return GcovFile(version, stamp, tuple(functions), summary, checksum, name)


def written(file: GcovFile) -> bytes:
    """The bytes that gcc and gcov-tool read: as libgcov of gcc 12 writes them. Raises NoSummary."""
    if file.summary is None:
        raise NoSummary(name=file.name)
    version = int.from_bytes(file.version.encode("ascii"), "big")
    parts = [MAGIC, struct.pack("<7I", version, file.stamp, file.checksum, SUMMARY, 8, *file.summary)]
    for function in file.functions:
        head = (FUNCTION, 12, function.ident, function.lineno_checksum, function.cfg_checksum, ARCS)
        length = 8 * len(function.arcs) * (1 if any(function.arcs) else -1)
        parts.append(struct.pack("<6Ii", *head, length))
        if length > 0:
            parts.append(struct.pack(f"<{len(function.arcs)}Q", *function.arcs))
    parts.append(struct.pack("<I", 0))
    return b"".join(parts)


class _Reader:
    """The words of a file, one after the other."""

    def __init__(self, content: bytes, name: str) -> None:
        self._content = content
        self._name = name
        self.place = 0
        self._ended = False

    def damaged(self, why: str) -> GcdaDamaged:
        return GcdaDamaged(name=self._name, why=why)

    def header(self) -> tuple[str, int, int]:
        """Version, stamp and checksum."""
        magic = self._content[:4]
        if magic != MAGIC:
            why = "it is of a machine with the highest byte first" if magic == OTHER_ENDIAN else "it begins otherwise"
            raise NotGcda(name=self._name, why=why if magic else "it is empty")
        _, number, stamp, checksum = self.words(4)
        version = number.to_bytes(4, "big").decode("latin-1")
        if not VERSION.fullmatch(version):
            raise self.damaged("its header has no version of gcc")
        if not OLDEST <= int(compiler_of(version).partition(".")[0]) <= NEWEST:
            raise OtherGcda(name=self._name, version=compiler_of(version), oldest=OLDEST, newest=NEWEST)
        return version, stamp, checksum

    def tag(self) -> int:
        """The next record's; 0 at the end of the file."""
        if self.place == len(self._content):
            return 0
        (tag,) = self.words(1)
        self._ended = tag == 0
        if kind := KINDS.get(tag if tag != ARCS else 0):
            raise OtherKindOfCounters(name=self._name, kind=kind)
        return tag

    def length(self) -> int:
        (length,) = self.words(1)
        return length if length < WORD // 2 else length - WORD

    def words(self, number: int) -> tuple[int, ...]:
        return self._unpacked(f"<{number}I", 4 * number)

    def arcs(self, most: int) -> tuple[int, ...]:
        """The counters after a function's head."""
        if self.tag() != ARCS:
            raise self.damaged(f"a function has no counters at byte {self.place}")
        length = self.length()
        if length % 8:
            raise self.damaged(f"counters have a length of {length} bytes at byte {self.place}")
        number = abs(length) // 8
        if number > most:
            raise self.damaged(f"it claims more than {MOST_COUNTERS:,} counters")
        if length < 0:
            return (0,) * number
        counters = self._unpacked(f"<{number}Q", length)
        if max(counters, default=0) > LARGEST_COUNT:
            raise self.damaged(f"a counter is negative before byte {self.place}")
        return counters

    def end(self, *, whole: bool) -> None:
        """Raise GcdaDamaged if bytes follow the end, or if a `whole` file, as programs write them, has none."""
        if self.place != len(self._content):
            raise self.damaged(f"it goes on after its end at byte {self.place}")
        if whole and not self._ended:
            raise self.damaged("its end is missing")

    def _unpacked(self, form: str, size: int) -> tuple[int, ...]:
        if len(self._content) - self.place < size:
            raise self.damaged(f"it is cut short: {size} bytes should follow byte {self.place}")
        values = struct.unpack_from(form, self._content, self.place)
        self.place += size
        return values
