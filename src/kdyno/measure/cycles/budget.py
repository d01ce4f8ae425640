"""Where modelled cycles go: the model's sum, taken apart by what the cycles are spent on. Pure.

The parts of a weighted sum add up by construction. The plugin attributes each stall cycle to one cause: see
crates/pmu/src/pipeline.rs (after Eyerman et al.: A performance counter architecture for computing accurate CPI
components, ASPLOS 2006). The cycles that would be left without some of them are the difference, to first order: another
wait that was hidden behind them would then show, and is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.measure.cycles.causes import CATEGORIES, CAUSES, Category

Unit = Literal["op", "KiB"]
"""The unit of work: an operation, or the bytes that a bandwidth is counted in."""


class Spent(Frozen):
    """Cycles of one category."""

    category: Category
    cycles: float
    share: float
    """Share of the budget's cycles, as a fraction."""
    events: dict[str, float]
    """The cycles that each of its events adds; the largest first."""


class Budget(Frozen):
    """The modelled cycles of one benchmark by category, in the median iteration of one boot; per unit of work."""

    benchmark: str
    variant: str
    unit: Unit
    cycles: float
    """Cycles in task and exception context, with user code."""
    interrupt_cycles: float
    """Cycles of the kernel's interrupts meanwhile; no other figure here includes them."""
    categories: tuple[Spent, ...]
    """All categories, in the order of CATEGORIES; their cycles add up to `cycles`."""
    fixed: float
    """Cycles that no compiler of the kernel can change."""
    perfect_fetch: float
    """Cycles that are left if every instruction is there when it is needed: all but those of the category fetch."""
    best_layout: float
    """The lower bound for any layout of the same code: without taken branches, jumps, and the misses that code and data
    share.
    """

    def share(self, cycles: float) -> float:
        """Return cycles as a fraction of the budget's."""
        return cycles / self.cycles if self.cycles else 0.0


class Budgets(Frozen):
    """The budgets of a run's benchmarks, each in one boot of each variant."""

    run: str
    family: str
    modelled: str
    """The caption that must go with every modelled figure."""
    boots: str
    """The boots that they are from."""
    budgets: tuple[Budget, ...]
    """Budgets by benchmark, and within it by variant, the baseline first."""
    notes: tuple[str, ...] = ()
    """Notes that a reader of differences between variants must know first."""
    missing: tuple[str, ...]
    """The reasons for missing budgets, one sentence for each benchmark of a variant."""


def budget(
    benchmark: str, variant: str, unit: Unit, parts: Mapping[str, float], interrupt_parts: Mapping[str, float]
) -> Budget:
    """Return a budget from the cycles that each event adds to one unit of work, see `predict.parts`."""
    spent = {category: _events(category, parts) for category in CATEGORIES}
    by_category = {category: math.fsum(events.values()) for category, events in spent.items()}
    cycles = math.fsum(by_category.values())
    layout = math.fsum(added for event, added in parts.items() if CAUSES[event].is_layout)
    return Budget(
        benchmark=benchmark,
        variant=variant,
        unit=unit,
        cycles=cycles,
        interrupt_cycles=math.fsum(interrupt_parts.values()),
        categories=tuple(
            Spent(category=category, cycles=added, share=added / cycles if cycles else 0.0, events=spent[category])
            for category, added in by_category.items()
        ),
        fixed=math.fsum(added for event, added in parts.items() if CAUSES[event].fixed),
        perfect_fetch=cycles - by_category["fetch"],
        best_layout=cycles - layout,
    )


def _events(category: Category, parts: Mapping[str, float]) -> dict[str, float]:
    return {event: added for event, added in parts.items() if CAUSES[event].category == category}


def percentages(shares: Sequence[float]) -> list[float]:
    """Return shares in percent with one decimal, rounded so that their sum is kept.

    The shares that lose most by being cut are rounded up (the method of largest remainders): each is off by less than
    0.1.
    """
    tenths = [1000 * share for share in shares]
    cut = [math.floor(value) for value in tenths]
    remaining = round(math.fsum(tenths)) - sum(cut)
    rounded_up = sorted(range(len(tenths)), key=lambda place: cut[place] - tenths[place])[:remaining]
    return [(value + (place in rounded_up)) / 10 for place, value in enumerate(cut)]
