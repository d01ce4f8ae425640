"""An explanation as data. Amounts are per unit of work unless stated otherwise."""

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
    """The event's part of the difference in modelled cycles: weight times difference."""


class FunctionChange(Frozen):
    """The own code of a function with its clones, without its callees."""

    function: str
    clones: tuple[str, ...]
    """Its symbols in the two kernels, unless they are just `function`."""
    instructions: Pair
    cycles: Pair
    """Modelled cycles."""
    size: Pair
    """The bytes of code of its executed clones; 0 if it wasn't executed."""


class Inlining(Frozen):
    """A function that became part of its caller, or stopped being one."""

    caller: str
    callee: str
    calls: float
    """The calls that went or appeared."""
    appeared: bool
    """True: inlined in the variant, called in the baseline. False: the other way round."""
    confirmed: bool | None
    """Whether the line tables of the kernel that should have it inlined confirm it; None without line tables."""

    @property
    def kernel(self) -> Literal["variant", "baseline"]:
        """The kernel that has the callee inlined."""
        return "variant" if self.appeared else "baseline"


class Footprint(Frozen):
    """The kernel code that was executed in the region, not per unit of work."""

    functions: Pair
    code_bytes: Pair
    """The complete sizes of these functions."""
    lines: Pair
    """Distinct cache lines of 64 bytes."""
    hot_lines: Pair
    """The fewest cache lines that have 99 % of the instructions."""
    pages: Pair
    """Distinct pages of 4 kB."""


class Explanation(Frozen):
    """The explanation of a benchmark's difference between a variant and the baseline."""

    benchmark: str
    baseline: str
    variant: str
    unit: Unit
    boots: str
    """The boots that it was made from."""
    counted: Literal["edges", "all"]
    family: str
    modelled: str
    """The caption that belongs to every modelled figure."""
    instructions: Pair
    cycles: Pair
    """Modelled; task and exception context."""
    interrupt_instructions: Pair
    interrupt_cycles: Pair
    """Modelled; interrupt context, which other figures leave out."""
    events: tuple[EventChange, ...]
    """The events that occurred, by their part of the difference."""
    functions: tuple[FunctionChange, ...]
    """The functions that were executed in either kernel, by the difference in modelled cycles."""
    notes: tuple[str, ...] = ()
    """Notes that the reader must know first."""
    inlining: tuple[Inlining, ...]
    footprint: Footprint
