"""Box plots of the values of all boots. One point is one unit of replication; its symbol is its layout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdyno.base.measurement import AnyBenchmark
from kdyno.base.text import clean
from kdyno.judge.verdicts.model import BootValue, Report
from kdyno.report.figures.style import SYMBOLS, Figure, Part, colours, figure, hover_template, legend_above, text, thin

COLUMNS = 4
CELL_PIXELS = 175
MOST_LETTERS = 45
"""Characters of all variants' names together: more overlap below the boxes."""
WIDTH = 0.62
"""The width of a box; variants are 1 apart."""
WHISKER = 1.5
"""Whiskers end at the last value within so many interquartile ranges of the box (Tukey 1977)."""
MOST_BENCHMARKS = 60
"""Benchmarks in the grid; the others have their own plot farther down the page."""

Values = dict[tuple[str, str], list[BootValue]]
"""(benchmark, variant) -> values."""


def group_values(report: Report) -> Values:
    values: Values = {}
    for value in report.values:
        values.setdefault((value.benchmark, value.variant), []).append(value)
    return values


def boxes(report: Report, benchmark: AnyBenchmark, values: Values) -> Figure:
    """Return the plot of one benchmark, with one box for each variant."""
    names = [_short(clean(name)) for name in report.variants]
    return figure(
        [part for place in range(len(report.variants)) for part in _box(report, benchmark.name, place, values)],
        280,
        showlegend=False,
        margin={"l": 60, "r": 10, "t": 8, "b": 34},
        xaxis={
            "tickvals": list(range(len(report.variants))),
            "ticktext": [text(name) for name in names],
            "range": [-0.6, len(report.variants) - 0.4],
            "showticklabels": sum(map(len, names)) <= MOST_LETTERS,  # the colours say it as well
            "showgrid": False,
            "zeroline": False,
            "tickangle": 0,
        },
        yaxis={"title": {"text": text(benchmark.unit)}, "zeroline": False},
    )


def grid(report: Report, values: Values) -> Figure:
    """Return small plots of all benchmarks side by side, for a quick survey."""
    measured = {benchmark for benchmark, _ in values}
    shown = [benchmark for benchmark in report.benchmarks if benchmark.name in measured][:MOST_BENCHMARKS]
    lines = max(1, -(-len(shown) // COLUMNS))
    gap = 46 / (CELL_PIXELS * lines)
    height = (1 - gap * (lines - 1)) / lines
    traces: list[Part] = [_legend(report, place) for place in range(len(report.variants))]
    axes: dict[str, Part] = {}
    titles: list[Part] = []
    for number, benchmark in enumerate(shown):
        row, column = divmod(number, COLUMNS)
        name = "" if number == 0 else str(number + 1)
        left, top = column * 0.26, 1 - row * (height + gap)
        axes[f"xaxis{name}"] = {
            "domain": [left, left + 0.205],
            "anchor": f"y{name}",
            "range": [-0.6, len(report.variants) - 0.4],  # a variant keeps its place where another one is missing
            "showticklabels": False,
            "ticks": "",
            "showgrid": False,
            "zeroline": False,
        }
        axes[f"yaxis{name}"] = {
            "domain": [max(0.0, top - height), top],
            "anchor": f"x{name}",
            "nticks": 4,
            "tickfont": {"size": 10},
            "zeroline": False,
        }
        titles.append(
            {
                "text": f"{text(benchmark.name)}, {text(benchmark.unit)}",
                "x": left + 0.1025,
                "y": top,
                "xref": "paper",
                "yref": "paper",
                "xanchor": "center",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 11},
            }
        )
        for place in range(len(report.variants)):
            for part in _box(report, benchmark.name, place, values):
                traces.append(part | {"xaxis": f"x{name}", "yaxis": f"y{name}"})
    return figure(
        traces,
        90 + CELL_PIXELS * lines,
        legend=legend_above(1 + 34 / (CELL_PIXELS * lines)),
        margin={"l": 50, "r": 10, "t": 80, "b": 10},
        annotations=titles,
        **axes,
    )


def _box(report: Report, benchmark: str, place: int, values: Values) -> list[Part]:
    """Return the box and the points of one variant; nothing if it has no value."""
    variant = report.variants[place]
    own = values.get((benchmark, variant), [])
    if not own:
        return []
    colour = colours(report)[variant]
    numbers = np.sort([value.value for value in own])
    low, median, high = np.quantile(numbers, [0.25, 0.5, 0.75]).tolist()
    reach = WHISKER * (high - low)
    within = numbers[(numbers >= low - reach) & (numbers <= high + reach)]
    points = thin(own)
    return [
        {
            "type": "scatter",
            "name": text(variant),
            "mode": "lines",
            **_outline(place, float(within.min()), low, median, high, float(within.max())),
            "line": {"width": 1.2, "color": colour},
            "showlegend": False,
            "hoverinfo": "y",
        },
        {
            "type": "scatter",
            "name": text(variant),
            "mode": "markers",
            "x": [place + 0.22 * _jitter(number) for number in range(len(points))],
            "y": [value.value for value in points],
            "marker": {"color": colour, "opacity": 0.9, **_symbols(points)},
            **hover_template(": %{y:.6~g}", points),
            "showlegend": False,
        },
    ]


def _outline(place: int, fence: float, low: float, median: float, high: float, upper_fence: float) -> Part:
    """Return a box with its whiskers as lines, with gaps between them: plotly's own boxes need the whole of plotly."""
    left, right = place - WIDTH / 2, place + WIDTH / 2
    lines: list[list[tuple[float, float]]] = [
        [(left, low), (left, high), (right, high), (right, low), (left, low)],
        [(left, median), (right, median)],
        [(place, fence), (place, low)],
        [(place, high), (place, upper_fence)],
    ]
    gap = (None, None)
    points = [point for line in lines for point in (*line, gap)]
    return {"x": [x for x, _ in points[:-1]], "y": [y for _, y in points[:-1]], "connectgaps": False}


def _legend(report: Report, place: int) -> Part:
    """Return an entry of the legend that doesn't depend on which plots the variant is in."""
    name = report.variants[place]
    marker = {"size": 9, "color": colours(report)[name], "symbol": "square"}
    return {"type": "scatter", "name": text(name), "mode": "markers", "x": [None], "y": [None], "marker": marker}


def _symbols(points: Sequence[BootValue]) -> Part:
    """Return dots; where layout was sampled, a symbol for each layout, large enough to be distinguished."""
    if all(value.layout is None for value in points):
        return {"size": 4, "symbol": SYMBOLS[0]}
    return {"size": 7, "symbol": [SYMBOLS[(value.layout or 0) % len(SYMBOLS)] for value in points]}


def _jitter(number: int) -> float:
    """Yield numbers from -1 to 1 that spread evenly and are equal in every report (golden-ratio sequence)."""
    return 2 * (0.5 + number * 0.618033988749895) % 2 - 1


def _short(name: str, most: int = 18) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
