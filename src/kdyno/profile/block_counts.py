"""How often each basic block was executed, and how often control went from one to another: edges on a block map.

A range of executed instructions covers blocks; a branch taken within a function goes from the block that it is in to
the block that it leads to. What came into a block otherwise fell through from the block before it: by running on, or by
coming back from a call that ends that block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.profile.block_map import BasicBlockMap
from kdyno.profile.edges import EdgeProfile

LONGEST_PADDING = 64
"""Bytes of alignment that may lie between a block and the one that it falls through to."""


@dataclass(frozen=True)
class FunctionCounts:
    """An executed function; its blocks by address."""

    address: int
    starts: tuple[int, ...]
    ids: tuple[int, ...]
    sizes: tuple[int, ...]
    """Bytes."""
    counts: tuple[int, ...]
    """Executions of the first instruction."""
    edges: tuple[tuple[int, int, int], ...]
    """Places of two blocks in `ids`, and how often control went from the first to the second; sorted."""


def count_blocks(block_map: BasicBlockMap, profile: EdgeProfile) -> Iterator[FunctionCounts]:
    """The functions that ran, by address of their entry."""
    blocks = block_map.blocks
    counts = _executions(blocks, profile)
    edges = _taken(blocks, profile)
    into = np.zeros(len(blocks), np.int64)
    for (_source, target), count in edges.items():
        into[target] += count
    edges.update(_fallen(blocks, counts, into, edges))
    by_function: dict[int, list[tuple[int, int, int]]] = {}
    for (source, target), count in sorted(edges.items()):
        by_function.setdefault(int(blocks["function"][source]), []).append((source, target, count))
    ran = set(np.unique(blocks["function"][counts > 0]).tolist())
    rows_of: dict[int, list[int]] = {}
    for row in np.flatnonzero(np.isin(blocks["function"], list(ran))).tolist():
        rows_of.setdefault(int(blocks["function"][row]), []).append(row)
    for function in sorted(ran, key=lambda index: (int(block_map.functions[index]), index)):
        rows = rows_of[function]
        place = {row: index for index, row in enumerate(rows)}
        inside = blocks[rows]
        yield FunctionCounts(
            address=int(block_map.functions[function]),
            starts=tuple(inside["start"].tolist()),
            ids=tuple(inside["id"].tolist()),
            sizes=tuple(inside["size"].tolist()),
            counts=tuple(counts[rows].tolist()),
            edges=tuple(
                (place[source], place[target], count) for source, target, count in by_function.get(function, [])
            ),
        )


def _executions(blocks: NDArray[Any], profile: EdgeProfile) -> NDArray[np.int64]:
    """How often the start of each block lay in a range."""
    changes = np.zeros(len(blocks) + 1, np.int64)
    if profile.ranges:
        ranges = np.array(profile.ranges, np.uint64)
        np.add.at(changes, np.searchsorted(blocks["start"], ranges[:, 0]), ranges[:, 2].astype(np.int64))
        ends = np.searchsorted(blocks["start"], ranges[:, 1], side="right")
        np.subtract.at(changes, ends, ranges[:, 2].astype(np.int64))
    return np.cumsum(changes)[:-1]


def _taken(blocks: NDArray[Any], profile: EdgeProfile) -> dict[tuple[int, int], int]:
    """Branches from a block to another of the same function, by row; not those to its entry, which are calls."""
    edges: dict[tuple[int, int], int] = {}
    if not profile.branches or not len(blocks):
        return edges
    branches = np.array(profile.branches, np.uint64)
    sources = np.searchsorted(blocks["start"], branches[:, 0], side="right") - 1
    targets = np.minimum(np.searchsorted(blocks["start"], branches[:, 1]), len(blocks) - 1)
    known = (
        (sources >= 0)
        & (branches[:, 0] - blocks["start"][sources] < blocks["size"][sources])
        & (blocks["start"][targets] == branches[:, 1])
        & (blocks["function"][sources] == blocks["function"][targets])
        & (blocks["id"][targets] != 0)
    )
    for row in np.flatnonzero(known).tolist():
        key = (int(sources[row]), int(targets[row]))
        edges[key] = edges.get(key, 0) + int(branches[row, 2])
    return edges


def _fallen(
    blocks: NDArray[Any], counts: NDArray[np.int64], into: NDArray[np.int64], taken: dict[tuple[int, int], int]
) -> dict[tuple[int, int], int]:
    """Edges to the next block, with what was taken there as well."""
    if len(blocks) < 2:
        return {}
    ends = blocks["start"][:-1] + blocks["size"][:-1]
    gap = blocks["start"][1:] - ends
    joined = (
        blocks["falls"][:-1]
        & (blocks["function"][1:] == blocks["function"][:-1])
        & (blocks["start"][1:] >= ends)
        & (gap < LONGEST_PADDING)
    )
    fell = np.minimum(counts[1:] - into[1:], counts[:-1])
    return {
        (row, row + 1): int(fell[row]) + taken.get((row, row + 1), 0)
        for row in np.flatnonzero(joined & (fell > 0)).tolist()
    }
