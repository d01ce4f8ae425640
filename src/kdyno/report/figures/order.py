"""The run-order plot: the distance of each value from its variant's mean, in the order of measuring. It shows drift."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from kdyno.judge.verdicts.model import BootValue, Report
from kdyno.report.figures.style import INK, Figure, Part, colours, figure, hover_template, legend_above, text, thin

FLAGGED = {"symbol": "circle-open", "size": 13, "color": "#c0362c", "line": {"width": 1.6}}
FEWEST = 3
"""Points from which on a line is drawn."""

Flags = Mapping[tuple[str, int | None], str]
"""(variant, block) -> the disturbances of that boot."""


@dataclass(frozen=True)
class OrderPoint:
    """One value and its distance from its variant's mean."""

    order: int
    residual: float
    """100 times the logarithm of the value over the mean."""
    value: BootValue


def points(values: Sequence[BootValue]) -> list[OrderPoint]:
    """Return the residuals of one benchmark: 100 times ln(value) minus its variant's mean; values without an order are
    left out.
    """
    by_variant: dict[str, list[BootValue]] = {}
    for value in values:
        if value.value > 0:
            by_variant.setdefault(value.variant, []).append(value)
    return sorted(
        (
            OrderPoint(value.order, 100 * (math.log(value.value) - mean), value)
            for own in by_variant.values()
            for mean in [fmean(math.log(other.value) for other in own)]
            for value in own
            if value.order is not None
        ),
        key=lambda point: point.order,
    )


def order(report: Report, shown: Sequence[OrderPoint], flags: Flags, *, legend: bool = False) -> Figure | None:
    """Return the residuals against the order of measuring, with the best-fitting line; None if the order wasn't
    recorded.
    """
    if len(shown) < FEWEST:
        return None
    traces = [_variant(report, name, shown) for name in report.variants]
    marked = [point for point in shown if (point.value.variant, point.value.block) in flags]
    for place, name in enumerate(dict.fromkeys(point.value.variant for point in marked)):
        own = [point for point in marked if point.value.variant == name]
        traces.append({**_flagged_trace(own, flags), "showlegend": place == 0})
    line, slope = _line(shown)
    return figure(
        [*traces, line],
        320 if legend else 280,
        showlegend=legend,
        legend=legend_above(),
        margin={"l": 60, "r": 10, "t": 30 if legend else 8, "b": 42},
        xaxis={
            "title": {"text": f"order of measuring (line: {100 * slope:+.2g} % per 100)"},
            "zeroline": False,
            "showgrid": False,
        },
        yaxis={"title": {"text": "off the variant's mean, %"}, "zerolinecolor": INK},
    )


def median_residuals(report: Report) -> list[OrderPoint]:
    """Return for each boot the median of its residuals over all benchmarks: the disturbances that all of them share."""
    by_place: dict[tuple[str, int], list[OrderPoint]] = {}
    by_name: dict[str, list[BootValue]] = {}
    for value in report.values:
        by_name.setdefault(value.benchmark, []).append(value)
    for own in by_name.values():
        for point in points(own):
            by_place.setdefault((point.value.variant, point.order), []).append(point)
    medians = [
        OrderPoint(place, median(point.residual for point in own), own[0].value) for (_, place), own in by_place.items()
    ]
    return sorted(medians, key=lambda point: point.order)


def _variant(report: Report, name: str, shown: Sequence[OrderPoint]) -> Part:
    own = thin([point for point in shown if point.value.variant == name])
    return {
        "type": "scatter",
        "name": text(name),
        "mode": "markers",
        "x": [point.order for point in own],
        "y": [_percent(point.residual) for point in own],
        "marker": {"size": 6, "color": colours(report)[name]},
        **hover_template(": %{y:+.3~g} %", [point.value for point in own]),
    }


def _flagged_trace(marked: Sequence[OrderPoint], flags: Flags) -> Part:
    return {
        "type": "scatter",
        "name": "disturbed",
        "mode": "markers",
        "x": [point.order for point in marked],
        "y": [_percent(point.residual) for point in marked],
        "legendgroup": "disturbed",
        "marker": FLAGGED,
        "hovertext": [text(flags[point.value.variant, point.value.block]) for point in marked],
        "hoverinfo": "text",
    }


def _percent(residual: float) -> float:
    """Return a residual as a change in percent, as the plots of residuals beside this one show it."""
    return 100 * math.expm1(min(residual / 100, 700.0))


def _line(shown: Sequence[OrderPoint]) -> tuple[Part, float]:
    """Return the least-squares line through all residuals, and its slope."""
    order, residuals = (
        np.array([point.order for point in shown], dtype=float),
        np.array([point.residual for point in shown]),
    )
    ends = [float(order.min()), float(order.max())]
    spread = order - order.mean()
    slope = float(spread @ residuals / (spread @ spread)) if ends[0] < ends[1] else 0.0
    line = {
        "type": "scatter",
        "name": "drift",
        "mode": "lines",
        "x": ends,
        "y": [_percent(float(residuals.mean()) + slope * (end - float(order.mean()))) for end in ends],
        "line": {"color": INK, "width": 1.5, "dash": "dash"},
        "hoverinfo": "skip",
    }
    return line, slope
