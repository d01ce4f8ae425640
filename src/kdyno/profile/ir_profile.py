"""The counts of a kernel that clang compiled with -fprofile-generate, without a profiling runtime.

With `-mllvm -disable-vp=true` the kernel contains counters and their description, and no undefined symbol. The counters
are read from the kernel's memory, and their description from its vmlinux. The layout is LLVM 19's INSTR_PROF_DATA in
profile/InstrProfData.inc, which comes with clang. No raw profile is written: llvm-profdata merges the text form, too
(lib/ProfileData/InstrProfWriter.cpp).

The name of a static function contains the path that the compiler received: `../fs/open.c;do_open`.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.kernel.vmlinux.elf_sections import MOST_BYTES, Damaged, MappedElf, MappedSection
from kdyno.profile.counters import Counts

DATA, NAMES, COUNTERS = "__llvm_prf_data", "__llvm_prf_names", "__llvm_prf_cnts"
RECORD = np.dtype(
    [
        ("name", "<u8"),
        ("hash", "<u8"),
        ("counters", "<i8"),
        ("bitmap", "<i8"),
        ("function", "<u8"),
        ("values", "<u8"),
        ("number", "<u4"),
        ("sites", "<u2", 3),
        ("bitmap_bytes", "<u4"),
    ],
    align=True,
)
"""`counters` is the distance of the counters from this record; a counter has 8 bytes."""
VERSION_SYMBOL = "__llvm_profile_raw_version"
VERSION = 10
"""INSTR_PROF_RAW_VERSION of LLVM 19."""
IR_LEVEL = 1 << 56
"""VARIANT_MASK_IR_PROF: the one variant whose counters are plain counts by -fprofile-generate."""
SEPARATOR = b"\x01"
MOST_NAMES = 1 << 26
"""The most bytes of all inflated names; a kernel has about 2,000,000."""
ODD_NAME = re.compile(r"^[#:]|^\s|\s$|[\x00-\x1f\x7f]|^$")
"""Characters that a name in a line of a text profile cannot contain."""


class NotInstrumented(UserError):
    message = "{path} has no counters of clang: the section {section} is missing"
    hint = "build the kernel with clang -fprofile-generate -mllvm -disable-vp=true, and keep the section"


class OtherLayout(UserError):
    message = "the counters of {path} cannot be read: {why}"
    hint = "build the kernel with clang-19, whose layout of counters kdyno reads"


class OtherMemory(UserError):
    message = "{size:,} bytes of memory from {start:#x} do not contain the counters of {name} at {address:#x}"
    hint = "take the snapshot from the kernel of this vmlinux, from the start of its section {section} to the end"


@dataclass(frozen=True)
class CountedFunction:
    """A function, and the place of its counters."""

    name: str
    hash: int
    """The hash of its control flow: where it differs, clang ignores the counts."""
    address: int
    """The address of its first counter, as linked."""
    counters: int


def counted_functions(path: Path) -> tuple[CountedFunction, ...]:
    """Return the instrumented functions of a vmlinux, in order. Raises NotInstrumented and OtherLayout."""
    with _translate_damage(path):
        return _functions(MappedElf(read_whole(path, MOST_BYTES)), path)


def counters_range(path: Path) -> range:
    """Return the addresses that a snapshot must contain. Raises NotInstrumented, OtherLayout."""
    with _translate_damage(path):
        section = _section(MappedElf(read_whole(path, MOST_BYTES)), COUNTERS, path)
    return range(section.address, section.address + section.size)


def counts_of(functions: Sequence[CountedFunction], start: int, memory: bytes) -> Counts:
    """Return the counters of all functions, in order, from memory that begins at address `start`.

    Addresses are those of the vmlinux: subtract the offset of KASLR first. Raises OtherMemory.
    """
    words = np.frombuffer(memory[: len(memory) // 8 * 8], "<u8")
    indices = []
    for function in functions:
        first, odd = divmod(function.address - start, 8)
        if odd or first < 0 or first + function.counters > len(words):
            raise OtherMemory(
                size=len(memory), start=start, name=function.name, address=function.address, section=COUNTERS
            )
        indices.append(np.arange(first, first + function.counters))
    return words[np.concatenate(indices)].astype(np.uint64) if indices else np.zeros(0, np.uint64)


def text_profile(functions: Sequence[CountedFunction], counts: Counts, *, executed_only: bool = False) -> str:
    """Return the text for `llvm-profdata merge`, from the functions and the result of `counts_of`.

    A function that never ran is included with zeros, and clang takes it for cold. With `executed_only` it is omitted,
    and clang compiles it as without a profile.
    """
    lines = ["# IR level Instrumentation Flag", ":ir"]
    values = counts.tolist()
    place = 0
    for function in functions:
        own = values[place : place + function.counters]
        place += function.counters
        if any(own) or not executed_only:
            lines += [function.name, "# Func Hash:", str(function.hash), "# Num Counters:", str(len(own))]
            lines += ["# Counter Values:", *map(str, own), ""]
    return "\n".join(lines) + "\n"


@contextmanager
def _translate_damage(path: Path) -> Iterator[None]:
    """Translate Damaged into OtherLayout with the path of the file."""
    try:
        yield
    except OSError as error:
        raise OtherLayout(path=path, why=error.strerror) from error
    except Damaged as why:
        raise OtherLayout(path=path, why=why) from None


def _functions(elf: MappedElf, path: Path) -> tuple[CountedFunction, ...]:
    data, names, counters = (_section(elf, name, path) for name in (DATA, NAMES, COUNTERS))
    _require_version(elf)
    if len(data.content) % RECORD.itemsize:
        raise Damaged(f"{DATA} is {len(data.content):,} bytes long, not a multiple of {RECORD.itemsize}")
    name_of = {name_reference(name): name for name in _names(names.content)}
    records = np.frombuffer(data.content, RECORD)
    if int(records["number"].astype(np.uint64).sum()) * 8 > counters.size:
        raise Damaged(f"its functions have more counters than {COUNTERS} can contain")
    functions = []
    for index, record in enumerate(records):
        name = name_of.get(int(record["name"]))
        if name is None:
            raise Damaged(f"record {index} of {DATA} has a name that isn't in {NAMES}")
        number = int(record["number"])
        address = data.address + index * RECORD.itemsize + int(record["counters"])
        first = address - counters.address
        if first < 0 or first % 8 or number == 0 or first + 8 * number > counters.size:
            raise Damaged(f"the counters of {name} aren't in {COUNTERS}")
        functions.append(CountedFunction(name, int(record["hash"]), address, number))
    return tuple(functions)


def name_reference(name: str) -> int:
    """Return the reference to a name in records: the low 64 bits of its MD5."""
    digest = hashlib.md5(name.encode("utf-8", errors="surrogateescape"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "little")


def _section(elf: MappedElf, name: str, path: Path) -> MappedSection:
    section = elf.section(name)
    if section is None:
        raise NotInstrumented(path=path, section=name)
    return section


def _require_version(elf: MappedElf) -> None:
    """Raise Damaged unless the version variable, which only -fprofile-generate defines, has this layout."""
    address = elf.symbol(VERSION_SYMBOL)
    content = elf.at(address, 8) if address is not None else b""
    if not content:
        raise Damaged(f"{VERSION_SYMBOL} is missing: the file is stripped, or was compiled without -fprofile-generate")
    version = int.from_bytes(content, "little")
    if version % IR_LEVEL != VERSION:
        raise Damaged(f"expected the raw version {VERSION}, got {version % (1 << 32)}")
    if version // IR_LEVEL != 1:
        raise Damaged(f"it was compiled with options besides -fprofile-generate (variant {version // IR_LEVEL:#x})")


def _names(content: bytes) -> Iterator[str]:
    """Yield the names of all objects. Each has two ULEB128 lengths, plain and deflated (0: plain), then names."""
    place, left = 0, MOST_NAMES
    while place < len(content):
        if content[place] == 0:  # padding between objects
            place += 1
            continue
        plain, place = _uleb128(content, place)
        deflated, place = _uleb128(content, place)
        stored = content[place : place + (deflated or plain)]
        place += deflated or plain
        if place > len(content) or plain > left:
            raise Damaged(f"{NAMES} has an impossible length at byte {place}")
        left -= plain
        text = _inflate(stored, plain) if deflated else stored
        yield from map(_decode_name, text.split(SEPARATOR))


def _inflate(stored: bytes, size: int) -> bytes:
    """Inflate to exactly `size` bytes."""
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(stored, size + 1)
    except zlib.error as error:
        raise Damaged(f"{NAMES} cannot be inflated: {error}") from None
    if len(text) != size:
        raise Damaged(f"names in {NAMES} are not {size:,} bytes long")
    return text


def _decode_name(name: bytes) -> str:
    text = name.decode("utf-8", errors="replace")
    if ODD_NAME.search(text) or text.encode() != name:
        raise Damaged(f"{NAMES} has an invalid name: {text[:60]!r}")
    return text


def _uleb128(content: bytes, place: int) -> tuple[int, int]:
    """Return the number at a place, of at most five bytes, and the place after it."""
    value = 0
    for shift, byte in enumerate(content[place : place + 5]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, place + shift + 1
    raise Damaged(f"{NAMES} has no length at byte {place}")
