"""Call edges between functions, and their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.measure.guest.pmu_parts import CALL, INDIRECT_CALL, RETURN, Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.functions import NOWHERE, FunctionMap, plain_name
from kdyno.profile.select import WORK, sum_contexts

THUNK = "__x86_indirect_thunk"
"""The names of retpolines, which call their target by a return (arch/x86/lib/retpoline.S)."""


@dataclass(frozen=True)
class CallEdge:
    caller: str
    callee: str
    kind: str
    """`call`, `indirect` or `tail`: a jump to the start of another function, which returns to the caller's caller."""
    count: int


def calls(record: PmuRecord, regions: Sequence[Region], contexts: Sequence[str] = WORK) -> list[CallEdge]:
    """Return all call edges, the most frequent first. The parts of a split function count as one."""
    branches = sum_contexts(regions, contexts).branches
    functions = FunctionMap(record.functions)
    callers, callees = functions.find(branches["source"]), functions.find(branches["target"])
    starts = functions.is_start(branches["target"])
    known = (callers != NOWHERE) & (callees != NOWHERE)
    edges: Counter[tuple[int, int, str]] = Counter()
    for row in np.flatnonzero(known & (starts | np.isin(branches["kind"], (CALL, INDIRECT_CALL)))):
        caller, callee = int(callers[row]), int(callees[row])
        if kind := _kind(record, caller, callee, int(branches["kind"][row])):
            edges[caller, callee, kind] += int(branches["count"][row])
    call_edges = [
        CallEdge(record.functions[caller].name, record.functions[callee].name, kind, count)
        for (caller, callee, kind), count in edges.items()
    ]
    return sorted(call_edges, key=lambda edge: (-edge.count, edge.caller, edge.callee, edge.kind))


def _kind(record: PmuRecord, caller: int, callee: int, branch: int) -> str:
    """Return the kind of call that a transfer to a function's start is; "" if it is not a call."""
    if branch == CALL:
        return "call"
    if branch == INDIRECT_CALL:
        return "indirect"
    source, target = record.functions[caller].name, record.functions[callee].name
    if branch == RETURN:
        return "indirect" if source.startswith(THUNK) else ""
    return "" if plain_name(source) == plain_name(target) else "tail"
