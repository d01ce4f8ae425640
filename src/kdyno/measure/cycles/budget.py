"""Where modelled cycles go: the model's sum, taken apart by what the cycles are spent on. Pure.

The parts of a weighted sum add up by construction. How stall cycles come to have one cause each is the plugin's matter:
see crates/pmu/src/pipeline.rs (after Eyerman et al.: A performance counter architecture for computing accurate CPI
components, ASPLOS 2006). What would be left without some of them is their difference, to first order: that another
wait would then show, which until now hid behind them, is ignored.
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
    """Of the budget's cycles, as a fraction."""
    events: dict[str, float]
    """What each of its events adds, in cycles; the largest first."""


class Budget(Frozen):
    """Where the modelled cycles of one benchmark go, in the median iteration of one boot; per unit of work."""

    benchmark: str
    variant: str
    unit: Unit
    cycles: float
    """In task and exception context, with user code."""
    interrupt_cycles: float
    """Of the kernel's interrupts meanwhile; in no other figure here."""
    categories: tuple[Spent, ...]
    """All of them, in the order of CATEGORIES; their cycles add up to `cycles`."""
    fixed: float
    """Cycles that no compiler of the kernel can change."""
    perfect_fetch: float
    """Cycles that are left if every instruction is there when it is needed: all but the category fetch."""
    best_layout: float
    """Cycles that no layout of the same code goes below: also without taken branches, jumps, and the misses that
    code and data have in common."""

    def share(self, cycles: float) -> float:
        """Cycles as a fraction of the budget's."""
        return cycles / self.cycles if self.cycles else 0.0


class Budgets(Frozen):
    """The budgets of a run's benchmarks, each in one boot of each variant."""

    run: str
    family: str
    modelled: str
    """What must be said with every modelled figure."""
    boots: str
    """Which boots they are from."""
    budgets: tuple[Budget, ...]
    """By benchmark, and within it by variant, the baseline first."""
    missing: tuple[str, ...]
    """Why a benchmark of a variant has none, in a sentence each."""


def budget(
    benchmark: str, variant: str, unit: Unit, parts: Mapping[str, float], interrupt_parts: Mapping[str, float]
) -> Budget:
    """Return a budget from what each event adds to the cycles of one unit of work, see `predict.parts`."""
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
    """Shares in percent with one decimal, rounded so that they still add up to what the shares add up to.

    Those that lose most by being cut are rounded up (the method of largest remainders): each is off by less than 0.1.
    """
    tenths = [1000 * share for share in shares]
    cut = [math.floor(value) for value in tenths]
    left = round(math.fsum(tenths)) - sum(cut)
    up = sorted(range(len(tenths)), key=lambda place: cut[place] - tenths[place])[:left]
    return [(value + (place in up)) / 10 for place, value in enumerate(cut)]
