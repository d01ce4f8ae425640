"""The categories of modelled cycles: a bar of 100 % for each benchmark, the variants side by side."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.base.text import number
from kdyno.measure.cycles.budget import Budget, percentages
from kdyno.measure.cycles.causes import CATEGORIES, TITLES, Category
from kdyno.report.figures.forest import ROW_PIXELS
from kdyno.report.figures.style import Figure, Part, figure, legend_above, text
from kdyno.understand.explain.budget_rows import variants

COLOURS: dict[Category, str] = {
    "user": "#d5d9de",
    "switches": "#8a8f98",
    "rep": "#5b626b",
    "fetch": "#d9822b",
    "instructions": "#3b6ea8",
    "dependencies": "#8fb3d9",
    "calls": "#1a7f4b",
    "data": "#8e5ba6",
    "mispredictions": "#c0362c",
    "branches": "#e3b341",
}
"""Greys stand for categories that are mostly beyond a compiler of the kernel."""
BESIDE = 4
"""Columns of bars in one plot: the baseline's and those of up to so many others less one."""
GAP = 0.03
MOST_BENCHMARKS = 60


def bars(budgets: Sequence[Budget]) -> list[Figure]:
    """Return one plot for the baseline and up to three others, a further one for the next three, and so on."""
    baseline, *others = variants(budgets)
    step = BESIDE - 1
    columns = [[baseline, *others[place : place + step]] for place in range(0, max(len(others), 1), step)]
    return [_plot(budgets, column) for column in columns]


def _plot(budgets: Sequence[Budget], names: Sequence[str]) -> Figure:
    shown = list(dict.fromkeys(budget.benchmark for budget in budgets))[:MOST_BENCHMARKS]
    width = (1 - GAP * (len(names) - 1)) / len(names)
    traces: list[Part] = []
    axes: dict[str, Part] = {}
    for place, name in enumerate(names):
        own = [budget for budget in budgets if budget.variant == name and budget.benchmark in shown]
        left = place * (width + GAP)
        suffix = str(place + 1) if place else ""
        axes[f"xaxis{suffix}"] = {
            "domain": [left, min(left + width, 1.0)],
            "range": [0, 100],
            "title": {"text": f"{text(name)}, % of its cycles"},
        }
        traces += [trace | {"xaxis": f"x{suffix}", "yaxis": "y", "showlegend": place == 0} for trace in _traces(own)]
    return figure(
        traces,
        120 + ROW_PIXELS * max(len(shown), 2),
        barmode="stack",
        bargap=0.25,
        legend=legend_above() | {"traceorder": "normal"},
        margin={"l": 10, "r": 14, "t": 34, "b": 46},
        yaxis={
            "categoryorder": "array",
            "categoryarray": [text(name) for name in reversed(shown)],
            "range": [-0.6, len(shown) - 0.4],
            "automargin": True,
            "ticks": "",
        },
        **axes,
    )


def _traces(budgets: Sequence[Budget]) -> list[Part]:
    """Return one trace for each category: its share in every benchmark of a variant."""
    shares = [percentages([spent.share for spent in budget.categories]) for budget in budgets]
    return [
        {
            "type": "bar",
            "orientation": "h",
            "name": TITLES[category],
            "legendgroup": category,
            "marker": {"color": COLOURS[category]},
            "x": [of_benchmark[place] for of_benchmark in shares],
            "y": [text(budget.benchmark) for budget in budgets],
            "hovertext": [
                _hover(budget, category, of_benchmark[place])
                for budget, of_benchmark in zip(budgets, shares, strict=True)
            ],
            "hoverinfo": "text",
        }
        for place, category in enumerate(CATEGORIES)
    ]


def _hover(budget: Budget, category: Category, percent: float) -> str:
    """Return the text of a bar: `lat_pipe, gcc-O2: fetch 10.0 %, 602.7 of 6,033 cycles/op<br>stall_fetch 533.4`."""
    [spent] = (spent for spent in budget.categories if spent.category == category)
    first = (
        f"{text(budget.benchmark)}, {text(budget.variant)}: {TITLES[category]} {percent:.1f} %, "
        f"{number(spent.cycles)} of {number(budget.cycles)} cycles/{budget.unit}"
    )
    return "<br>".join([first, *(f"{event} {number(added)}" for event, added in spent.events.items())])
