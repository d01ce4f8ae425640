"""The effects that this run could have seen, and those that a larger one would see."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kdyno.judge.stats.estimate import POWER
from kdyno.judge.stats.planning.power import PowerCurve
from kdyno.judge.verdicts.model import Report
from kdyno.report.figures.style import INK, Figure, Part, colours, figure, hover_template, text

MANY_POWERS = 6
"""Powers of ten on an axis that leave no room for ticks between them."""
MOST_EFFECT = 10.0
"""The largest effect that is drawn, as a fraction. Two replicates show effects from 1e30 on alone."""
MARGIN = {"l": 56, "r": 10, "t": 8, "b": 42}


def power(report: Report, curves: Sequence[PowerCurve]) -> Figure | None:
    """Return the chance of seeing an effect, over its size; the margin and 80 % are marked."""
    drawn = [curve for curve in curves if len(curve.power) > 1]
    if not drawn:
        return None
    return figure(
        [
            _curve(
                report,
                curve.variant,
                [100 * point.effect for point in curve.power],
                [100 * point.power for point in curve.power],
                "%{x:.3~g} %: seen in %{y:.0f} % of runs",
            )
            for curve in drawn
        ],
        280,
        showlegend=False,
        margin=MARGIN,
        shapes=[_mark(x=100 * report.margin), _mark(y=100 * POWER)],
        xaxis={"title": {"text": "true effect, %"}, "rangemode": "tozero", "nticks": 6},
        yaxis={"title": {"text": "power, %"}, "range": [0, 103]},
    )


def detectable(report: Report, curves: Sequence[PowerCurve]) -> Figure | None:
    """Return the smallest effect that is seen with 80 % power, over the number of replicates; a dot marks this run's
    number.
    """
    shown = [(curve, [p for p in curve.detectable if p.effect <= MOST_EFFECT]) for curve in curves]
    drawn = [(curve, points) for curve, points in shown if len(points) > 1 and all(p.effect > 0 for p in points)]
    if not drawn:
        return None
    return figure(
        [
            _curve(
                report,
                curve.variant,
                [point.n for point in points],
                [100 * point.effect for point in points],
                "n = %{x}: %{y:.3~g} %",
                [9 if point.n == curve.n else 0 for point in points],
            )
            for curve, points in drawn
        ],
        280,
        showlegend=False,
        margin=MARGIN,
        shapes=[_mark(y=100 * report.margin)],
        xaxis={"title": {"text": "replicates"}, **_log_axis([p.n for _, points in drawn for p in points])},
        yaxis={
            "title": {"text": "smallest effect seen, %"},
            **_log_axis([100 * report.margin, *(100 * p.effect for _, points in drawn for p in points)]),
        },
    )


def _log_axis(values: Sequence[float]) -> Part:
    """Return a logarithmic axis with ticks at 1, 2 and 5 times the powers of ten that the values (not negative)
    span.
    """
    shown = [value for value in values if value > 0]
    powers = range(math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown))) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in ((1, 2, 5) if len(powers) < MANY_POWERS else (1,))]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks], "tickfont": {"size": 10}}


def _curve(
    report: Report,
    variant: str,
    x: Sequence[float],
    y: Sequence[float],
    hover: str,
    sizes: list[int] | None = None,
) -> Part:
    colour = colours(report)[variant]
    return {
        "type": "scatter",
        "name": text(variant),
        "mode": "lines+markers" if sizes else "lines",
        "x": list(x),
        "y": list(y),
        "line": {"color": colour, "width": 2},
        "marker": {"color": colour, "size": sizes or 0, "opacity": 1},
        **hover_template(f": {hover}"),
    }


def _mark(x: float | None = None, y: float | None = None) -> Part:
    """Return a line across the plot at one value."""
    ends = {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "y domain"} if x is not None else {}
    ends = ends or {"x0": 0, "x1": 1, "xref": "x domain", "y0": y, "y1": y}
    return {"type": "line", "line": {"color": INK, "width": 1, "dash": "dot"}, **ends}
