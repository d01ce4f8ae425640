"""Inlining that appeared or went, from calls alone: an edge of the call graph is gone, and the caller has grown.

This is evidence, not proof: kdyno says "seems" unless the line tables of vmlinux confirm it (see line_tables.py).
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
"""Calls per unit of work below which an edge isn't looked at."""
GONE = 0.05
"""An edge is gone when less than this part of it is left."""
LOST = 0.5
"""The callee must have lost this part of the edge's calls altogether: otherwise others call it now."""
GROWN = 0.2
"""The caller must have grown by this part of the callee's lost instructions: much is optimised away, but not all."""

Edge = tuple[str, str]
"""Caller and callee, plain names."""


@dataclass(frozen=True)
class Calls:
    """Who calls whom in a region, per unit of work."""

    edges: dict[Edge, float]
    into: dict[str, float]
    """Callee -> calls from everybody."""
    own: dict[str, float]
    """Function -> instructions of its own code."""
    sizes: dict[str, int]
    """Function -> bytes."""


def calls_of(measured: MeasuredRegion) -> Calls:
    """Call edges of task and exception context. Clones are folded: a call of `f` to `f.part.0` is none."""
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
    """What seems to be inlined in one and not in the other, the most frequent calls first."""
    before, after = calls_of(baseline), calls_of(variant)
    changes = [
        Inlining(caller=caller, callee=callee, calls=rate, appeared=appeared, confirmed=None)
        for called, inlined, appeared in ((before, after, True), (after, before, False))
        for (caller, callee), rate in _vanished(called, inlined).items()
    ]
    return tuple(sorted(changes, key=lambda change: (-change.calls, change.caller, change.callee)))


def _vanished(called: Calls, inlined: Calls) -> dict[Edge, float]:
    """Edges of `called` whose callee seems to be part of its caller in `inlined`."""
    gone = {
        (caller, callee): rate
        for (caller, callee), rate in called.edges.items()
        if rate >= RARE
        and inlined.edges.get((caller, callee), 0) < GONE * rate
        and called.into[callee] - inlined.into.get(callee, 0) >= LOST * rate
    }
    return {
        (caller, callee): rate
        for (caller, callee), rate in gone.items()
        if (host := _host(caller, gone, inlined)) is not None and _grew(host, callee, called, inlined)
    }


def _host(caller: str, gone: Mapping[Edge, float], inlined: Calls) -> str | None:
    """The function that has the code of `caller` now: itself, or where it was inlined in its turn; None if none has."""
    passed = set()
    while caller not in inlined.own:
        passed.add(caller)
        callers = sorted((-rate, above) for (above, below), rate in gone.items() if below == caller)
        if not callers or callers[0][1] in passed:
            return None
        caller = callers[0][1]
    return caller


def _grew(host: str, callee: str, called: Calls, inlined: Calls) -> bool:
    """Whether a function's own code is another, and executes so much more that it can have the callee's."""
    lost = called.own.get(callee, 0) - inlined.own.get(callee, 0)
    grown = inlined.own.get(host, 0) - called.own.get(host, 0)
    return called.sizes.get(host) != inlined.sizes[host] and grown > 0 and grown >= GROWN * lost
