"""What kdyno-layout is asked and what it answers (crates/layout/src/job.rs reads it)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.measure.cycles.family import Family
from kdyno.measure.cycles.predict import cycles
from kdyno.measure.guest.pmu_parts import Region, Trace
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.order_start import units_at
from kdyno.profile.order_units import KINDS, Text

MAGIC = "kdyno-layout 1"
PAGE = 4096
"""What the first function of an order is aligned to, so that it is known where in the caches it lies."""


COUNTED = 0.6
"""The part of starved cycles that delays retirement, and so is stall_fetch: the rest passes while earlier instructions
are still waiting. See docs/layout.md for how near that is."""


@dataclass(frozen=True)
class OrderSearch:
    moves: int
    seed: int
    guard: float | None


def job(
    records: Sequence[PmuRecord],
    text: Text,
    families: Sequence[Family],
    orders: Sequence[Sequence[int]],
    search: OrderSearch,
) -> bytes:
    """The job. `orders`: lists of indices of units; the search starts from the first."""
    traces: list[dict[str, Any]] = []
    arrays: list[NDArray[np.uint64]] = [_units(text)]
    for boot, record in enumerate(records):
        for region in record.regions.values():
            if region.trace is None or not len(region.trace.steps):
                continue
            arrays += [_blocks(region.trace, text), region.trace.steps]
            traces.append(
                {
                    "boot": boot,
                    "blocks": len(region.trace.blocks),
                    "steps": len(region.trace.steps),
                    "cycles": [_cycles(record, region, family) for family in families],
                }
            )
    header = {
        "families": [family.path.read_text(encoding="utf-8") for family in families],
        "weights": [
            [COUNTED * family.weights.get("stall_fetch", 0.0), family.weights.get("l1i_misses", 0.0)]
            for family in families
        ],
        "base": -(-text.base // PAGE) * PAGE,
        "units": len(text.units),
        "traces": traces,
        "orders": [list(order) for order in orders],
        "guard": search.guard,
        "moves": search.moves,
        "seed": search.seed,
    }
    numbers = b"".join(np.ascontiguousarray(array, "<u8").tobytes() for array in arrays)
    return f"{MAGIC}\n{json.dumps(header)}\n".encode() + numbers


def _units(text: Text) -> NDArray[np.uint64]:
    rows = [(unit.start, unit.end - unit.start, unit.align, KINDS.index(unit.kind)) for unit in text.units]
    return np.array(rows, np.uint64).reshape(len(rows), 4)


def _blocks(trace: Trace, text: Text) -> NDArray[np.uint64]:
    """Unit + 1 (0: none), start, last, end, ops and whether it ends in a branch, time."""
    blocks = trace.blocks
    start = blocks["start"]
    ops = blocks["ops"].astype(np.uint64) << np.uint64(1) | blocks["is_branch"].astype(np.uint64)
    columns = (
        (units_at(text, start) + 1).astype(np.uint64),
        start,
        start + blocks["last"],
        start + blocks["length"],
        ops,
        blocks["time"].astype(np.uint64),
    )
    return np.stack(columns, axis=1)


def _cycles(record: PmuRecord, region: Region, family: Family) -> float:
    """Of the steps that are in the trace: of the last iteration, less what was left out."""
    assert region.trace
    events = region.iterations[max(region.iterations)].sum(axis=0)
    kept = len(region.trace.steps)
    return float(cycles(events, record.names, family)) * kept / (kept + region.trace.left_out)


@dataclass(frozen=True)
class Answer:
    """What kdyno-layout says."""

    recorded: NDArray[np.float64]
    """Modelled cycles under the layout that was recorded, [families, traces]."""
    start: NDArray[np.float64]
    """The same under the order that the search started from."""
    best: NDArray[np.float64]
    """And under the one that it came to."""
    units: list[tuple[int, int | None]]
    """Index of each unit of that order, and where it begins, in bytes from the first; None: where it can."""
    end: int | None
    """Where what isn't ordered begins."""


def read_answer(text: str) -> Answer:
    answer = json.loads(text)
    cycles = [
        np.array([[trace["cycles"] for trace in traces] for traces in families])
        for families in (answer["recorded"], *answer["orders"])
    ]
    found_order = answer["found"]
    return Answer(cycles[0], cycles[1], cycles[-1], [tuple(unit) for unit in found_order["units"]], found_order["end"])
