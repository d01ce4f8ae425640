"""The execution counts of a kernel's instructions by address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.measure.guest.pmu_parts import BLOCK, CONDITIONAL, Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.code import Code
from kdyno.profile.select import sum_contexts

PADDING = re.compile(
    rb"(?:\xcc|(?:\x66|\x2e){0,10}(?:\x90|\x0f\x1f(?:\x00|\x40.|\x44..|\x80.{4}|\x84.{5})))+", re.DOTALL
)
"""Padding that compilers and assemblers insert to align code, and the kernel in place of patched code: NOPs of one to
fifteen bytes (Intel's manual, volume 2B, table 4-12) and INT3."""
LONGEST_PADDING = 64
SHORT_JUMPS = range(0x70, 0x80)
NEAR_JUMPS = range(0x80, 0x90)
"""The second byte, after 0x0f."""


@dataclass(frozen=True, eq=False)
class Executions:
    """A step function over addresses: segment i extends from starts[i] to starts[i + 1], and the last has no end."""

    starts: NDArray[np.uint64]
    counts: NDArray[np.uint64]
    is_padding: NDArray[np.bool_]
    """Whether a segment was not executed, and contains only padding."""
    one_way: NDArray[np.uint64]
    """Addresses of conditional branches that were executed and always went the same way, ascending."""

    def at(self, addresses: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the execution count of the instruction at each address."""
        indices = np.searchsorted(self.starts, addresses, side="right").astype(np.int64) - 1
        return np.where(indices >= 0, self.counts[np.maximum(indices, 0)], np.uint64(0))

    def bytes_before(self, addresses: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the number of executed bytes below each address."""
        is_executed = self.counts > 0
        bytes_below = np.concatenate(
            (np.zeros(1, np.uint64), np.cumsum(np.diff(self.starts) * is_executed[:-1], dtype=np.uint64))
        )
        indices = np.maximum(np.searchsorted(self.starts, addresses, side="right").astype(np.int64) - 1, 0)
        return bytes_below[indices] + (addresses - self.starts[indices]) * is_executed[indices]


def executions(
    record: PmuRecord, regions: Sequence[Region], contexts: Sequence[str], code: Code, *, with_boot: bool
) -> Executions:
    """Return the executions of these regions and contexts; `with_boot` adds those outside of all regions, if recorded.

    The directions of branches outside of regions are not recorded: such a branch doesn't count as one-way.
    """
    context = sum_contexts(regions, contexts)
    outside = record.unmeasured if with_boot and record.unmeasured is not None else np.empty(0, BLOCK)
    blocks = np.concatenate((context.blocks, outside))
    starts, counts = count_steps(blocks, blocks["count"])
    is_padding = _padding(starts, counts, code)
    inside = Executions(
        *count_steps(context.blocks, context.blocks["count"]), np.zeros(0, bool), np.zeros(0, np.uint64)
    )
    ends = np.unique(context.blocks["start"] + context.blocks["last"])
    ends = np.setdiff1d(ends, outside["start"] + outside["last"])
    ends = ends[[_is_conditional(code.at(address, 6)) for address in ends.tolist()]] if len(ends) else ends
    conditional = context.branches[context.branches["kind"] == CONDITIONAL]
    taken_count: dict[int, int] = {}
    for source, count in zip(conditional["source"].tolist(), conditional["count"].tolist(), strict=True):
        taken_count[source] = taken_count.get(source, 0) + count
    times = inside.at(ends).tolist()
    one_way = [
        address
        for address, count_of_branch in zip(ends.tolist(), times, strict=True)
        if count_of_branch and taken_count.get(address, 0) in (0, count_of_branch)
    ]
    return Executions(starts, counts, is_padding, np.array(one_way, np.uint64))


def count_steps(blocks: NDArray[Any], counts: NDArray[Any]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the addresses where counts change, and the counts from there; the first segment begins at address 0.

    `counts` has the executions of each of the blocks.
    """
    counts = counts.astype(np.int64)
    bounds = np.concatenate((np.zeros(1, np.uint64), blocks["start"], blocks["start"] + blocks["length"]))
    changes = np.concatenate((np.zeros(1, np.int64), counts, -counts))
    starts, indices = np.unique(bounds, return_inverse=True)
    sums = np.zeros(len(starts), np.int64)
    np.add.at(sums, indices, changes)
    levels = np.cumsum(sums)
    keeps = np.concatenate(([True], levels[1:] != levels[:-1]))
    return starts[keeps], np.maximum(levels[keeps], 0).astype(np.uint64)


def _padding(starts: NDArray[np.uint64], counts: NDArray[np.uint64], code: Code) -> NDArray[np.bool_]:
    """Return for each segment whether it was not executed and contains only padding."""
    lengths = np.diff(starts, append=starts[-1:])
    is_padding = np.zeros(len(starts), bool)
    for place in np.flatnonzero((counts == 0) & (lengths > 0) & (lengths <= LONGEST_PADDING)).tolist():
        is_padding[place] = PADDING.fullmatch(code.at(int(starts[place]), int(lengths[place]))) is not None
    return is_padding


def _is_conditional(instruction: bytes) -> bool:
    """Return whether the instruction is a conditional jump without prefixes (Intel's manual, volume 2A, Jcc)."""
    if len(instruction) < 2:
        return False
    return instruction[0] in SHORT_JUMPS or (instruction[0] == 0x0F and instruction[1] in NEAR_JUMPS)
