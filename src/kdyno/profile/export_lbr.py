"""Text like that of `perf script -F ip,brstack`, for `llvm-profgen --perfscript`.

Each sample is a line with its count, and a line with an address and one or two branch records, the latest first:
`0xFROM/0xTO/P/-/-/0`. The code between two records ran: from the target of the earlier to the source of the
later. A range is thus a branch to its start and a branch from its end to address 0, which is outside the kernel and
doesn't count as a branch. A range that was entered otherwise (by falling through, or from user code) has a branch from
address 0. A branch that doesn't enter a range is a separate sample. Thus the counts of ranges and branches are exact,
and nothing is scaled.

The counts are llvm-profgen's extension of the format (parseAggregatedCount in PerfReader.cpp); other readers
expect the output of perf itself, which writes each sample as often as it was taken.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdyno.profile.edges import EdgeProfile

OUTSIDE = 0

Sample = tuple[int, list[tuple[int, int]]]
"""The count, and (from, to) of the branches, the latest first."""


def lbr(edges: EdgeProfile) -> str:
    return "".join(f"{count}\n{_line(branches)}\n" for count, branches in samples(edges))


def samples(edges: EdgeProfile) -> Iterator[Sample]:
    """Yield samples that contain each range and each branch exactly as often as it was executed."""
    entering: dict[int, list[list[int]]] = {}
    for source, target, count in edges.branches:
        entering.setdefault(target, []).append([source, count])
    for start, last, count in edges.ranges:
        left = count
        for branch in entering.get(start, ()):
            if taken := min(left, branch[1]):
                yield taken, [(last, OUTSIDE), (branch[0], start)]
                branch[1] -= taken
                left -= taken
        if left:
            yield left, [(last, OUTSIDE), (OUTSIDE, start)]
    for target, branches in entering.items():
        for source, left in branches:
            if left:
                yield left, [(source, target)]


def _line(branches: list[tuple[int, int]]) -> str:
    records = " ".join(f"0x{source:x}/0x{target:x}/P/-/-/0" for source, target in branches)
    return f" {branches[0][0]:x} {records}"
