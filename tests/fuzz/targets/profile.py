"""Readers of foreign bytes: counters of instrumented kernels, and what is read of a vmlinux."""

from __future__ import annotations

import gzip
import io
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from kdyno.kernel.vmlinux.sources import read_sources
from kdyno.profile.block_counts import count_blocks
from kdyno.profile.block_map import parse as parse_blocks
from kdyno.profile.edges import EdgeProfile
from kdyno.profile.gcda import GcovFile, GcovFunction, encode_gcda, read_gcda
from kdyno.profile.ir_profile import counted_functions, counters_range, counts_of, text_profile
from kdyno.profile.pgod import read_sent
from tests.fuzz.check import LARGEST, Target
from tests.unit import ir_specimen, pgod_specimen
from tests.unit.block_map_specimen import listing
from tests.unit.coverage_specimen import kernels

BLOCKS = listing(
    {
        0xFFFFFFFF81000000: [(0xFFFFFFFF81000000, [(0, 0, 16, True), (2, 16, 8, True), (1, 24, 0, True)])],
        0xFFFFFFFF81000040: [(0xFFFFFFFF81000040, [(0, 0, 9, False)]), (0xFFFFFFFF81000900, [(3, 0, 5, False)])],
    }
).encode()
"""What llvm-readobj lists of the blocks of two functions."""


def units(path: Path) -> None:
    """Compilation units of a vmlinux: names in it are whatever the tree's files are called."""
    sources = read_sources(path)
    assert all(isinstance(file, str) for file in sources.files(np.array([0, 1 << 32, (1 << 64) - 1], np.uint64)))


def blocks(path: Path) -> None:
    """What llvm-readobj lists of a vmlinux: any numbers."""
    mapped = parse_blocks(path.read_text(encoding="utf-8", errors="replace"))
    first = 0xFFFF_FFFF_8100_0000
    ran = EdgeProfile([(0, (1 << 64) - 1, 1), (first, first + 0x1000, 7)], [(first + 12, first + 24, 5), (0, first, 1)])
    for function in count_blocks(mapped, ran):
        assert len(function.ids) == len(function.sizes) == len(function.counts) and min(function.counts) >= 0
        assert all(max(source, target) < len(function.ids) and count > 0 for source, target, count in function.edges)


def gcda(path: Path) -> None:
    """What was read is encode_gcda and read again, as gcc would."""
    file = read_gcda(path.read_bytes(), "vmscan.gcda")
    again = replace(file, summary=file.summary or (1, 1))
    assert read_gcda(encode_gcda(again), "again") == again


def gcdas() -> Sequence[bytes]:
    arcs = ((3, 1 << 40, 0), (0, 0), ())
    functions = tuple(GcovFunction(index, 5, 6, arc_counts) for index, arc_counts in enumerate(arcs, 1))
    whole = encode_gcda(GcovFile("B22*", 99, functions, (1, 1 << 31)))
    return whole, whole[:16] + whole[32:-4]


def instrumented(path: Path) -> None:
    """Whatever counters a file says it has, they are in the memory that it says they are in."""
    functions, memory = counted_functions(path), counters_range(path)
    counts = counts_of(functions, memory.start, bytes(min(len(memory), LARGEST)))
    assert text_profile(functions, counts).count("# Func Hash:") == len(functions)
    assert not any("\n" in function.name for function in functions)


@cache
def instrumented_programs() -> Sequence[bytes]:
    with tempfile.TemporaryDirectory() as directory:
        return [ir_specimen.build(Path(directory)).read_bytes()]


def pulled(path: Path) -> object:
    with path.open("rb") as file:
        return list(read_sent(file.read, "m"))


def pulled_snapshot(path: Path) -> object:
    """The same, where the inner archive is what was changed."""
    run, _ = pgod_specimen.snapshot(COUNTERS)
    content = gzip.compress(path.read_bytes(), mtime=0)
    sent = pgod_specimen.sent((run | {"file_bytes": len(content)}, content))
    return list(read_sent(io.BytesIO(sent).read, "m"))


COUNTERS = {"kernel/fork.gcda": pgod_specimen.gcda([5, 0], [100]), f"{'a' * 90}/mm/slub.gcda": pgod_specimen.gcda([1])}
TARGETS = (
    Target("units", units, kernels, examples=100),
    Target("blocks", blocks, lambda: [BLOCKS], (b"Offset: 0x", b"ID: ", b"CanFallThrough: Yes", b"Address: 0x")),
    Target("gcda", gcda, gcdas, (b"\0\0\0\x01\x0c\0\0\0", b"\0\0\xa1\x01", b"\xf8\xff\xff\xff")),
    Target("instrumented", instrumented, instrumented_programs, examples=200),
    Target("pulled", pulled, lambda: [pgod_specimen.sent(pgod_specimen.snapshot(COUNTERS))]),
    Target("pulled-snapshot", pulled_snapshot, lambda: [gzip.decompress(pgod_specimen.snapshot(COUNTERS)[1])]),
)  # fmt: skip
