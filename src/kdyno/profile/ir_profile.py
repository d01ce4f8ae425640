"""What a kernel counted that clang compiled with -fprofile-generate, without a runtime in it.

`-mllvm -disable-vp=true` leaves counters and their description, and no undefined symbol. The counters are read out of
the kernel's memory, and what they belong to out of its vmlinux. The layout is LLVM 19's INSTR_PROF_DATA in
profile/InstrProfData.inc, which comes with clang. No raw profile is written: llvm-profdata merges the text form, too
(lib/ProfileData/InstrProfWriter.cpp).

A static function is called `../fs/open.c;do_open` in it: by the path that the compiler was given.
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
from kdyno.profile.counters import Counts
from kdyno.profile.elf_sections import MOST_BYTES, Damaged, MappedElf, MappedSection

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
"""Bytes of all names, inflated: a kernel's are some 2,000,000."""
ODD_NAME = re.compile(r"^[#:]|^\s|\s$|[\x00-\x1f\x7f]|^$")
"""What a line of a text profile can't hold as a name."""


class NotInstrumented(UserError):
    message = "{path} has no counters of clang's: there is no section {section}"
    hint = "build the kernel with clang -fprofile-generate -mllvm -disable-vp=true, and keep the section"


class OtherLayout(UserError):
    message = "{path} has counters that can't be read: {why}"
    hint = "they are read as clang 19 lays them out; build the kernel with clang-19"


class OtherMemory(UserError):
    message = "{size:,} bytes of memory from {start:#x} on don't have the counters of {name} at {address:#x}"
    hint = (
        "take the snapshot from the kernel that the vmlinux is of, from the start of its section {section} to the end"
    )


@dataclass(frozen=True)
class CountedFunction:
    """A function and where its counters are."""

    name: str
    hash: int
    """Of its control flow: where it differs, clang takes no counts."""
    address: int
    """Of its first counter, as the vmlinux is linked."""
    counters: int


def counted_functions(path: Path) -> tuple[CountedFunction, ...]:
    """The instrumented functions of a vmlinux, in the order of their records. Raises NotInstrumented, OtherLayout."""
    with _told_of(path):
        return _functions(MappedElf(read_whole(path, MOST_BYTES)), path)


def counters_range(path: Path) -> range:
    """The addresses that a snapshot has to have. Raises NotInstrumented, OtherLayout."""
    with _told_of(path):
        section = _section(MappedElf(read_whole(path, MOST_BYTES)), COUNTERS, path)
    return range(section.address, section.address + section.size)


def counts_of(functions: Sequence[CountedFunction], start: int, memory: bytes) -> Counts:
    """The counters of all functions, one after the other, out of memory that begins at address `start`.

    Addresses are those of the vmlinux: where a kernel was moved (KASLR), take that off first. Raises OtherMemory.
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
    """The text that `llvm-profdata merge` takes, from the functions and what `counts_of` gives.

    A function that never ran is in it with its zeros, and clang takes it for cold; with `executed_only` it is left out,
    and clang compiles it as it does without a profile.
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
def _told_of(path: Path) -> Iterator[None]:
    """What is wrong with a file becomes one message."""
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
        raise Damaged(f"{DATA} is {len(data.content):,} bytes long, no multiple of {RECORD.itemsize}")
    name_of = {name_reference(name): name for name in _names(names.content)}
    records = np.frombuffer(data.content, RECORD)
    if int(records["number"].astype(np.uint64).sum()) * 8 > counters.size:
        raise Damaged(f"its functions have more counters than {COUNTERS} has room for")
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
    """How records refer to a name: the low 64 bits of its MD5."""
    digest = hashlib.md5(name.encode("utf-8", errors="surrogateescape"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "little")


def _section(elf: MappedElf, name: str, path: Path) -> MappedSection:
    section = elf.section(name)
    if section is None:
        raise NotInstrumented(path=path, section=name)
    return section


def _require_version(elf: MappedElf) -> None:
    """Raise Damaged unless the variable that says so says this layout; only -fprofile-generate makes it."""
    address = elf.symbol(VERSION_SYMBOL)
    content = elf.at(address, 8) if address is not None else b""
    if not content:
        raise Damaged(f"there is no {VERSION_SYMBOL}: it is stripped, or was compiled without -fprofile-generate")
    version = int.from_bytes(content, "little")
    if version % IR_LEVEL != VERSION:
        raise Damaged(f"its raw version is {version % (1 << 32)}, not {VERSION}")
    if version // IR_LEVEL != 1:
        raise Damaged(
            f"it was compiled by other means than -fprofile-generate alone (variant {version // IR_LEVEL:#x})"
        )


def _names(content: bytes) -> Iterator[str]:
    """The names of all objects. Each has two ULEB128 lengths, plain and deflated (0: it isn't), then the names."""
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
            raise Damaged(f"{NAMES} has a length that can't be at byte {place}")
        left -= plain
        text = _inflated(stored, plain) if deflated else stored
        yield from map(_usable, text.split(SEPARATOR))


def _inflated(stored: bytes, size: int) -> bytes:
    """Exactly `size` bytes."""
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(stored, size + 1)
    except zlib.error as error:
        raise Damaged(f"{NAMES} can't be inflated: {error}") from None
    if len(text) != size:
        raise Damaged(f"names in {NAMES} are not {size:,} bytes long")
    return text


def _usable(name: bytes) -> str:
    text = name.decode("utf-8", errors="replace")
    if ODD_NAME.search(text) or text.encode() != name:
        raise Damaged(f"{NAMES} has an odd name: {text[:60]!r}")
    return text


def _uleb128(content: bytes, place: int) -> tuple[int, int]:
    """The number at a place, of five bytes at most, and the place behind it."""
    value = 0
    for shift, byte in enumerate(content[place : place + 5]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, place + shift + 1
    raise Damaged(f"{NAMES} has no length at byte {place}")
