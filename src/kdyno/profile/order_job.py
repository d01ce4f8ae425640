"""The job and the answer of kdyno-layout (crates/layout/src/job.rs reads the job)."""

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
"""The alignment of the first function of an order, in bytes, so that its cache sets are known."""


COUNTED = 0.6
"""The part of starved cycles that delays retirement, and so is stall_fetch. The rest passes while earlier instructions
are still waiting. docs/layout.md has the error of this approximation."""


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
    """Encode the job. `orders` are lists of indices of units; the search starts from the first."""
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
    """Return rows of unit + 1 (0: none), start, last, end, ops and which branch it ends in, time."""
    blocks = trace.blocks
    start = blocks["start"]
    call, branch = blocks["is_call"].astype(np.uint64), blocks["is_branch"].astype(np.uint64)
    ops = blocks["ops"].astype(np.uint64) << np.uint64(2) | call << np.uint64(1) | branch
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
    """Return the cycles of the steps in the trace: of the last iteration, without omitted steps."""
    assert region.trace
    events = region.iterations[max(region.iterations)].sum(axis=0)
    kept = len(region.trace.steps)
    return float(cycles(events, record.names, family)) * kept / (kept + region.trace.left_out)


@dataclass(frozen=True)
class Answer:
    """The answer of kdyno-layout."""

    recorded: NDArray[np.float64]
    """The modelled cycles with the recorded layout, [families, traces]."""
    start: NDArray[np.float64]
    """The modelled cycles with the order from which the search started, [families, traces]."""
    best: NDArray[np.float64]
    """The modelled cycles with the order that the search found, [families, traces]."""
    units: list[tuple[int, int | None]]
    """The index of each unit of the found order, and its start in bytes from the first; None: as near as possible."""
    end: int | None
    """The start of the units outside the order, in bytes from the first."""


def read_answer(text: str) -> Answer:
    answer = json.loads(text)
    cycles = [
        np.array([[trace["cycles"] for trace in traces] for traces in families])
        for families in (answer["recorded"], *answer["orders"])
    ]
    found_order = answer["found"]
    return Answer(cycles[0], cycles[1], cycles[-1], [tuple(unit) for unit in found_order["units"]], found_order["end"])
