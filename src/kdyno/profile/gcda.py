"""Reading and writing gcc's `.gcda` files, which a kernel with CONFIG_GCOV_KERNEL has under /sys/kernel/debug/gcov.

The format is that of gcc/gcov-io.h and libgcc/libgcov-driver.c of gcc 12, and of the kernel's kernel/gcov/gcc_4_7.c.
All numbers are 32-bit words, lowest byte first; a counter is two of them, the low one first:

    file:      magic version stamp checksum [summary] function... [0]
    summary:   0xa1000000 8 runs sum_max
    function:  0x01000000 12 ident lineno_checksum cfg_checksum, then 0x01a10000 LENGTH counter...

LENGTH is in bytes since gcc 12. It is negative if all counters are 0, which are then omitted. A kernel writes all
counters, and no summary and no 0 at the end. gcc 13 to 16 write the same with another version; they support more kinds
of counters (conditions, paths), which a kernel has only on request.
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
"""The tags of counters, from gcc/gcov-counter.def."""
OLDEST, NEWEST = 12, 16
"""The releases of gcc that write this format. Before 12 lengths are in words, and there is no checksum."""
VERSION = re.compile(r"[A-Z][0-9][0-9][ -~]")
MOST_COUNTERS = 1 << 20
"""The most functions in one file: records of zeros take no bytes, so that a short file may claim any number. The
largest file of Linux 6.12 in kdyno's configuration has 4,024 (kernel/events/core)."""
MOST_FUNCTIONS = 1 << 17
"""The most counters in one file."""
MOST_IN_ALL = 1 << 22
"""The most counters in all objects of a kernel, which are in memory together. Linux 6.12 in kdyno's configuration has
189,756."""
OVERHEAD = 8
"""The memory of a function, and of a file without its name, in counters; 8 bytes of a name count as one counter."""
LARGEST_COUNT = 2**63 - 1
WORD = 2**32


class NotGcda(UserError):
    message = "{name} is not a .gcda file of gcc: {why}"
    hint = "copy the files below /sys/kernel/debug/gcov of a kernel with CONFIG_GCOV_KERNEL"


class GcdaDamaged(UserError):
    message = "{name} is damaged: {why}"
    hint = "copy it again, or train again; a truncated or edited file cannot be repaired"


class OtherGcda(UserError):
    message = "{name} is a file of gcc {version}: expected gcc {oldest} to {newest}"
    hint = "build the kernel with a supported gcc"


class OtherKindOfCounters(UserError):
    message = "{name} has counters of the kind {kind}, which cannot be summed like counters of arcs"
    hint = "compile with -fprofile-arcs, as GCOV_KERNEL does, instead of -fprofile-generate"


class NoSummary(UserError):
    message = "{name} has no object summary, without which gcc finds no hot code"
    hint = "train with kdyno, which adds the summary to the files of a kernel"


@dataclass(frozen=True, slots=True)
class GcovFunction:
    """A function, with the counts of its instrumented arcs."""

    ident: int
    """The number by which gcc finds the function: derived from its name, the same in every build."""
    lineno_checksum: int
    """The checksum of its file, line and name."""
    cfg_checksum: int
    """The checksum of its control flow: where it differs, gcc ignores the counts."""
    arcs: tuple[int, ...]


@dataclass(frozen=True)
class GcovFile:
    """The counters of one object."""

    version: str
    """The version of gcc, as in the header: `B22*` is 12.2."""
    stamp: int
    """The stamp of the compilation: it differs if an object is compiled again."""
    functions: tuple[GcovFunction, ...]
    summary: tuple[int, int] | None = None
    """The number of runs, and the sum of the largest counter of each run; None in files of a kernel."""
    checksum: int = 0
    """The checksum of the source file; a kernel writes 0, and gcc ignores it."""
    name: str = field(default="", compare=False)
    """The name of the file, for messages."""


class CounterAllowance:
    """The remaining memory for the counters of many files."""

    def __init__(self, most: int = MOST_IN_ALL) -> None:
        self._most = self._left = most

    def take(self, file: GcovFile) -> None:
        """Account for one more file. Raises GcdaDamaged if the files have more counters than any kernel."""
        self._left -= OVERHEAD + len(file.name) // 8
        self._left -= sum(OVERHEAD + len(function.arcs) for function in file.functions)
        if self._left < 0:
            raise GcdaDamaged(
                name=file.name, why=f"together with the previous files, it claims more than {self._most:,} counters"
            )


def compiler_of(version: str) -> str:
    """Return the version of gcc for the version in a header: `12.2` for `B22*`, from gcc/gcov-io.h. The last letter is
    `*` for a release, also in Debian.
    """
    return f"{(ord(version[0]) - ord('A')) * 10 + int(version[1])}.{version[2]}"


def read_gcda(content: bytes, name: str) -> GcovFile:
    """Parse a file, in time proportional to its length.

    Functions that are in another object (length 0) are omitted. Raises NotGcda, GcdaDamaged, OtherGcda and
    OtherKindOfCounters. A file of a kernel that is truncated between two functions looks complete; only the
    number of its functions in another snapshot shows it.
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
            raise reader.damaged(
                f"there is an unknown record {tag:#010x} of length {length} at byte {reader.place - 8}"
            )
    reader.end(whole=summary is not None)
    return GcovFile(version, stamp, tuple(functions), summary, checksum, name)


def encode_gcda(file: GcovFile) -> bytes:
    """Return the bytes of a file for gcc and gcov-tool, as libgcov of gcc 12 writes them. Raises NoSummary."""
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
    """A reader of the words of a file, in order."""

    def __init__(self, content: bytes, name: str) -> None:
        self._content = content
        self._name = name
        self.place = 0
        self._ended = False

    def damaged(self, why: str) -> GcdaDamaged:
        return GcdaDamaged(name=self._name, why=why)

    def header(self) -> tuple[str, int, int]:
        """Return the version, stamp and checksum."""
        magic = self._content[:4]
        if magic != MAGIC:
            why = (
                "it is of a big-endian machine" if magic == OTHER_ENDIAN else "it does not begin with the magic number"
            )
            raise NotGcda(name=self._name, why=why if magic else "it is empty")
        _, number, stamp, checksum = self.words(4)
        version = number.to_bytes(4, "big").decode("latin-1")
        if not VERSION.fullmatch(version):
            raise self.damaged("its header has no valid version of gcc")
        if not OLDEST <= int(compiler_of(version).partition(".")[0]) <= NEWEST:
            raise OtherGcda(name=self._name, version=compiler_of(version), oldest=OLDEST, newest=NEWEST)
        return version, stamp, checksum

    def tag(self) -> int:
        """Return the tag of the next record; 0 at the end of the file."""
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
        return self._unpack(f"<{number}I", 4 * number)

    def arcs(self, most: int) -> tuple[int, ...]:
        """Return the counters after the header of a function."""
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
        counters = self._unpack(f"<{number}Q", length)
        if max(counters, default=0) > LARGEST_COUNT:
            raise self.damaged(f"a counter is negative before byte {self.place}")
        return counters

    def end(self, *, whole: bool) -> None:
        """Raise GcdaDamaged if bytes follow the end, or if a `whole` file, as programs write it, has no end."""
        if self.place != len(self._content):
            raise self.damaged(f"data follows its end at byte {self.place}")
        if whole and not self._ended:
            raise self.damaged("its end is missing")

    def _unpack(self, form: str, size: int) -> tuple[int, ...]:
        if len(self._content) - self.place < size:
            raise self.damaged(f"it is truncated: expected {size} more bytes after byte {self.place}")
        values = struct.unpack_from(form, self._content, self.place)
        self.place += size
        return values
