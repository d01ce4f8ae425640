"""The amount of code that a region executes: functions, cache lines, pages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kdyno.understand.explain.measured import MeasuredRegion
from kdyno.understand.explain.model import Footprint, Pair

LINE_BITS, PAGE_BITS = 6, 12
HOT = 0.99
"""The share of all instructions in hot lines."""
LONGEST_BLOCK = 2 << PAGE_BITS
"""The longest block in bytes: a block of QEMU spans at most two pages."""


def footprint(baseline: MeasuredRegion, variant: MeasuredRegion) -> Footprint:
    """Compare the code that two regions execute in task and exception context."""
    baseline_code, variant_code = _executed_code(baseline), _executed_code(variant)
    return Footprint(**{name: Pair(baseline=baseline_code[name], variant=variant_code[name]) for name in baseline_code})


def _executed_code(measured: MeasuredRegion) -> dict[str, int]:
    blocks = np.concatenate([context.blocks for context in measured.contexts])
    lines, instructions = _spread(blocks[blocks["count"] > 0], LINE_BITS)
    return {
        "functions": len(measured.bodies),
        "code_bytes": sum(body.size for body in measured.bodies.values()),
        "lines": len(lines),
        "hot_lines": _fewest(instructions, HOT),
        "pages": len(np.unique(lines >> np.uint64(PAGE_BITS - LINE_BITS))),
    }


def _spread(blocks: NDArray[np.void], bits: int) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Return the distinct units of 2**bits bytes that blocks touch, and the instructions executed in each.

    The instructions of a block are distributed evenly over the units that it touches.
    """
    length = np.clip(blocks["length"].astype(np.uint64), 1, LONGEST_BLOCK)
    first = blocks["start"] >> np.uint64(bits)
    last = (blocks["start"] + length - np.uint64(1)) >> np.uint64(bits)
    counts = (last - first + np.uint64(1)).astype(np.int64)
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    executed = blocks["instructions"].astype(np.float64) * blocks["count"] / np.maximum(counts, 1)
    units, index = np.unique(np.repeat(first, counts) + offsets.astype(np.uint64), return_inverse=True)
    spread = np.bincount(index.ravel(), weights=np.repeat(executed, counts), minlength=len(units))
    return units, spread.astype(np.float64)


def _fewest(amounts: NDArray[np.float64], part: float) -> int:
    """Return the smallest number of amounts whose sum is at least `part` of the total."""
    if not len(amounts):
        return 0
    sums = np.cumsum(np.sort(amounts)[::-1])
    return int(np.searchsorted(sums, part * sums[-1])) + 1
