"""What an explanation says, as data. All amounts are per unit of work unless they say otherwise."""

from __future__ import annotations

from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.measure.cycles.budget import Unit


class Pair(Frozen):
    """One quantity in both kernels."""

    baseline: float
    variant: float

    @property
    def difference(self) -> float:
        return self.variant - self.baseline


class EventChange(Frozen):
    """One event, in task and exception context."""

    event: str
    amount: Pair
    cycles: float
    """What the event adds to the difference in modelled cycles: weight times difference."""


class FunctionChange(Frozen):
    """A function, its clones folded into it; its own code, without what it calls."""

    function: str
    clones: tuple[str, ...]
    """The names it has in the two kernels, where they aren't just `function`."""
    instructions: Pair
    cycles: Pair
    """Modelled."""
    size: Pair
    """Bytes of code, of all its clones that were executed; 0 where it wasn't."""


class Inlining(Frozen):
    """A function that became part of its caller, or ceased to be."""

    caller: str
    callee: str
    calls: float
    """Calls that are gone, or that came."""
    appeared: bool
    """True: inlined in the variant, called in the baseline. False: the other way round."""
    confirmed: bool | None
    """Whether the line tables of the kernel that should have it inlined say so; None without line tables."""

    @property
    def kernel(self) -> Literal["variant", "baseline"]:
        """The kernel that has the callee inlined."""
        return "variant" if self.appeared else "baseline"


class Footprint(Frozen):
    """The kernel code that was executed in the region at all, not per unit of work."""

    functions: Pair
    code_bytes: Pair
    """Sizes of these functions, whole."""
    lines: Pair
    """Distinct cache lines of 64 bytes."""
    hot_lines: Pair
    """The fewest cache lines that have 99 % of the instructions."""
    pages: Pair
    """Distinct pages of 4 kB."""


class Explanation(Frozen):
    """Why a benchmark differs between a variant and the baseline."""

    benchmark: str
    baseline: str
    variant: str
    unit: Unit
    boots: str
    """Which boots it is from."""
    counted: Literal["edges", "all"]
    family: str
    modelled: str
    """What must be said with every modelled figure."""
    instructions: Pair
    cycles: Pair
    """Modelled; task and exception context."""
    interrupt_instructions: Pair
    interrupt_cycles: Pair
    """Modelled; interrupt context, in no other figure here."""
    events: tuple[EventChange, ...]
    """Those that occurred, by their part in the difference."""
    functions: tuple[FunctionChange, ...]
    """Those that were executed in either, by the difference in modelled cycles."""
    notes: tuple[str, ...] = ()
    """What a reader must know first."""
    inlining: tuple[Inlining, ...]
    footprint: Footprint
