"""Inlining that appeared or went, from calls alone: an edge of the call graph is gone, and the caller has grown.

This is evidence, not proof: kdyno prints "seems" unless the line tables of vmlinux confirm it (see line_tables.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from kdyno.profile.calls import calls
from kdyno.profile.functions import plain_name
from kdyno.understand.explain.measured import MeasuredRegion
from kdyno.understand.explain.model import Inlining

RARE = 0.05
"""Edges with fewer calls per unit of work are ignored."""
GONE = 0.05
"""An edge is gone if less than this share of its calls remains."""
LOST = 0.5
"""The share of the edge's calls that the callee must have lost in total: otherwise others call it now."""
GROWN = 0.2
"""The share of the callee's lost instructions by which the caller must have grown: a part of them is optimised away."""

Edge = tuple[str, str]
"""Caller and callee, plain names."""


@dataclass(frozen=True)
class Calls:
    """The calls between functions in a region, per unit of work."""

    edges: dict[Edge, float]
    into: dict[str, float]
    """Callee -> calls from all callers."""
    own: dict[str, float]
    """Function -> instructions of its own code."""
    sizes: dict[str, int]
    """Function -> bytes."""


def calls_of(measured: MeasuredRegion) -> Calls:
    """Return the call edges of task and exception context.

    Clones are folded: a call of `f` to `f.part.0` doesn't count.
    """
    edges: dict[Edge, float] = defaultdict(float)
    into: dict[str, float] = defaultdict(float)
    for call in calls(measured.record, [measured.region]):
        caller, callee = plain_name(call.caller), plain_name(call.callee)
        if caller != callee:
            edges[caller, callee] += call.count / measured.work
            into[callee] += call.count / measured.work
    instructions = measured.column("instructions")
    own = {name: float(body.events[instructions]) for name, body in measured.bodies.items()}
    sizes = {name: body.size for name, body in measured.bodies.items()}
    return Calls(dict(edges), dict(into), own, sizes)


def inlining(baseline: MeasuredRegion, variant: MeasuredRegion) -> tuple[Inlining, ...]:
    """Return the calls that seem to be inlined in only one kernel, the most frequent first."""
    baseline_calls, variant_calls = calls_of(baseline), calls_of(variant)
    changes = [
        Inlining(caller=caller, callee=callee, calls=rate, appeared=appeared, confirmed=None)
        for called, inlined, appeared in ((baseline_calls, variant_calls, True), (variant_calls, baseline_calls, False))
        for (caller, callee), rate in _inlined_edges(called, inlined).items()
    ]
    return tuple(sorted(changes, key=lambda change: (-change.calls, change.caller, change.callee)))


def _inlined_edges(called: Calls, inlined: Calls) -> dict[Edge, float]:
    """Return the edges of `called` whose callee seems to be part of its caller in `inlined`."""
    missing_edges = {
        (caller, callee): rate
        for (caller, callee), rate in called.edges.items()
        if rate >= RARE
        and inlined.edges.get((caller, callee), 0) < GONE * rate
        and called.into[callee] - inlined.into.get(callee, 0) >= LOST * rate
    }
    return {
        (caller, callee): rate
        for (caller, callee), rate in missing_edges.items()
        if (host := _host(caller, missing_edges, inlined)) is not None and _has_grown(host, callee, called, inlined)
    }


def _host(caller: str, missing_edges: Mapping[Edge, float], inlined: Calls) -> str | None:
    """Return the function that has the code of `caller` now: itself, or the one that it was inlined into; else None."""
    visited = set()
    while caller not in inlined.own:
        visited.add(caller)
        callers = sorted(
            (-rate, edge_caller) for (edge_caller, edge_callee), rate in missing_edges.items() if edge_callee == caller
        )
        if not callers or callers[0][1] in visited:
            return None
        caller = callers[0][1]
    return caller


def _has_grown(host: str, callee: str, called: Calls, inlined: Calls) -> bool:
    """Return whether the code of a function changed, and executes enough more to contain that of the callee."""
    lost_instructions = called.own.get(callee, 0) - inlined.own.get(callee, 0)
    added_instructions = inlined.own.get(host, 0) - called.own.get(host, 0)
    return (
        called.sizes.get(host) != inlined.sizes[host]
        and added_instructions > 0
        and added_instructions >= GROWN * lost_instructions
    )
