"""The rows of budgets as short text, for the terminal and for the report. Shares are in percent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import fmean

from kdyno.base.lanes import COUNTED_LANE
from kdyno.base.text import format_count
from kdyno.measure.cycles.budget import Budget, Budgets, Spent, percentages
from kdyno.measure.cycles.causes import CATEGORIES, TITLES, Category
from kdyno.understand.explain.figures import amount, change
from kdyno.understand.explain.rows import Row

SHORT: dict[Category, str] = {
    "user": "user",
    "switches": "switch",
    "rep": "rep",
    "fetch": "fetch",
    "instructions": "instr",
    "dependencies": "deps",
    "calls": "calls",
    "data": "data",
    "mispredictions": "mispr",
    "branches": "branch",
}
OF_VARIANT, OF_EVENT = "→ ", "· "
"""The prefixes of lines below another one."""
SMALLEST = 0.0005
"""Events with a smaller share are not shown one by one."""
LEGEND = (
    "switch: privilege switches, fences and what serializes; fixed: what no compiler of the kernel can move; "
    "layout: what a layout of the same code can gain at most (fetch is what perfect fetch would gain)"
)
COLUMNS = ("benchmark", "cycles", *SHORT.values(), "fixed", "layout")


def lines(budgets: Sequence[Budget]) -> list[Row]:
    """Return a row of COLUMNS for each benchmark and variant: the baseline's has the benchmark's name, others the
    variant's.

    The last rows have the mean shares of each variant, with equal weights of all benchmarks.
    """
    rows = [
        (
            f"{OF_VARIANT}{budget.variant}" if place else budget.benchmark,
            f"{amount(budget.cycles)}/{budget.unit}",
            *_percent([spent.share for spent in budget.categories]),
            *_limits(budget),
        )
        for _, benchmark_budgets in groupby(budgets, key=lambda budget: budget.benchmark)
        for place, budget in enumerate(benchmark_budgets)
    ]
    budgets_by_variant = {name: [budget for budget in budgets if budget.variant == name] for name in variants(budgets)}
    if len(budgets) == len(budgets_by_variant):
        return rows
    return rows + [
        _means(name, variant_budgets, place) for place, (name, variant_budgets) in enumerate(budgets_by_variant.items())
    ]


def variants(budgets: Sequence[Budget]) -> list[str]:
    """Return the names of variants, the baseline first."""
    return list(dict.fromkeys(budget.variant for budget in budgets))


def _means(variant: str, budgets: Sequence[Budget], place: int) -> Row:
    shares = [fmean(budget.categories[column].share for budget in budgets) for column in range(len(CATEGORIES))]
    fixed = fmean(budget.share(budget.fixed) for budget in budgets)
    layout = fmean(budget.share(budget.cycles - budget.best_layout) for budget in budgets)
    return (
        f"{OF_VARIANT}{variant}" if place else f"mean of {format_count(len(budgets), 'benchmark')}",
        "",
        *_percent(shares),
        f"{100 * fixed:.1f}",
        f"{100 * layout:.1f}",
    )


def _percent(shares: Sequence[float]) -> list[str]:
    return [f"{percent:.1f}" for percent in percentages(shares)]


def _limits(budget: Budget) -> tuple[str, str]:
    """Return the share that no compiler can move, and the largest gain of a layout, in percent."""
    layout = budget.cycles - budget.best_layout
    return f"{100 * budget.share(budget.fixed):.1f}", f"{100 * budget.share(layout):.1f}"


def spending(budgets: Sequence[Budget]) -> list[Row]:
    """Return the rows of one benchmark: category or event, cycles and shares of variants, and their difference."""
    shown = [percentages([spent.share for spent in budget.categories]) for budget in budgets]
    rows: list[Row] = []
    for place, category in enumerate(CATEGORIES):
        spent = [budget.categories[place] for budget in budgets]
        rows.append(_line(TITLES[category], [part.cycles for part in spent], [shares[place] for shares in shown]))
        rows += _events(spent, budgets)
    return [*rows, _line("all", [budget.cycles for budget in budgets], [sum(shares) for shares in shown])]


def limits(budgets: Sequence[Budget]) -> list[Row]:
    """Return the limits of one benchmark in the columns of `spending`: fixed cycles, the best cases, and interrupts."""
    kinds = (
        ("no compiler can move", [budget.fixed for budget in budgets]),
        ("left with perfect fetch", [budget.perfect_fetch for budget in budgets]),
        ("left by any layout, at least", [budget.best_layout for budget in budgets]),
    )
    rows = [
        _line(title, cycles, [100 * budget.share(part) for budget, part in zip(budgets, cycles, strict=True)])
        for title, cycles in kinds
    ]
    return [*rows, _line("apart: interrupts", [budget.interrupt_cycles for budget in budgets], [])]


def _events(spent: Sequence[Spent], budgets: Sequence[Budget]) -> list[Row]:
    """Return the rows of a category's events, the largest first; empty for a single event."""
    names = sorted(
        {event for part in spent for event in part.events},
        key=lambda event: -max(part.events.get(event, 0.0) for part in spent),
    )
    rows = []
    for event in names if len(names) > 1 else []:
        cycles = [part.events.get(event, 0.0) for part in spent]
        shares = [budget.share(added) for budget, added in zip(budgets, cycles, strict=True)]
        if max(shares) >= SMALLEST:
            rows.append(_line(f"{OF_EVENT}{event}", cycles, [100 * share for share in shares]))
    return rows


def _line(title: str, cycles: Sequence[float], percent: Sequence[float]) -> Row:
    shown = [f"{share:.1f}" for share in percent] or [""] * len(cycles)
    cells = [cell for pair in zip(map(amount, cycles), shown, strict=True) for cell in pair]
    return (title, *cells, *([change(cycles[1] - cycles[0])] if len(cycles) == 2 else []))


def caption(budgets: Budgets) -> str:
    """Return the first line: lane and model."""
    return f"lane: {COUNTED_LANE.name} — cycles are {budgets.modelled}"
