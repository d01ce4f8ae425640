"""Throughput over the number of processes: values, means, both laws with their intervals, and perfect scaling."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.base.text import number
from kdyno.judge.curves.model import ScalingSeries
from kdyno.judge.stats.scaling.laws import TITLES, Law, LawFit, Prediction
from kdyno.report.figures.style import INK, Figure, Part, figure, legend_above, text, thin

COLOURS: dict[Law, str] = {"amdahl": "#d9822b", "usl": "#3b6ea8"}
SHADES: dict[Law, str] = {"amdahl": "rgba(217,130,43,0.13)", "usl": "rgba(59,110,168,0.16)"}


def curves(series: ScalingSeries) -> Figure:
    """Return the measurements and the fits of one series; a line is dashed where nothing was measured."""
    traces = [part for fit in series.scaling.fits for part in _law(fit)]
    ends = [point.n for fit in series.scaling.fits for point in fit.curve]
    drawn = [value.throughput for value in series.values]
    drawn += [point.throughput for fit in series.scaling.fits for point in fit.curve]
    return figure(
        [*traces, *_perfect(series, max(ends, default=series.scaling.points[-1].n)), _values(series), _means(series)],
        460,
        margin={"l": 64, "r": 10, "t": 40, "b": 46},
        legend=legend_above(),
        xaxis={"title": {"text": "n"}, "rangemode": "tozero"},
        # Intervals of few values may be hundreds of times as long as everything else.
        yaxis={"title": {"text": f"throughput, {text(series.unit)}"}, "range": [0, 1.2 * max(drawn)]},
    )


def _law(fit: LawFit) -> list[Part]:
    """Return the band of a law's interval, its line, and its line beyond what was measured."""
    inside = [point for point in fit.curve if not point.extrapolated]
    beyond = [inside[-1], *(point for point in fit.curve if point.extrapolated)]
    parts = [_line(fit, inside, "solid", shown=True)]
    if len(beyond) > 1:
        parts.append(_line(fit, beyond, "dash", shown=False))
    sure = [point for point in fit.curve if point.low is not None and point.high is not None]
    if sure:
        edge: Part = {
            "type": "scatter",
            "mode": "lines",
            "x": [*(point.n for point in sure), *(point.n for point in reversed(sure))],
            "y": [*(point.high for point in sure), *(point.low for point in reversed(sure))],
            "fill": "toself",
            "fillcolor": SHADES[fit.law],
            "line": {"width": 0},
            "hoverinfo": "skip",
            "legendgroup": fit.law,
            "showlegend": False,
        }
        parts.insert(0, edge)
    return parts


def _line(fit: LawFit, points: Sequence[Prediction], dash: str, *, shown: bool) -> Part:
    marked = "" if shown else ", extrapolated"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": TITLES[fit.law],
        "legendgroup": fit.law,
        "showlegend": shown,
        "x": [point.n for point in points],
        "y": [point.throughput for point in points],
        "line": {"color": COLOURS[fit.law], "width": 2, "dash": dash},
        "hovertext": [f"{TITLES[fit.law]}, n = {point.n}: {number(point.throughput)}{marked}" for point in points],
        "hoverinfo": "text",
    }


def _perfect(series: ScalingSeries, largest: int) -> list[Part]:
    """Return n times the throughput of one process, as far as the plot is high."""
    first, top = series.scaling.points[0], max(value.throughput for value in series.values)
    if first.n != 1:
        return []
    end = min(float(largest), 1.15 * top / first.throughput)
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "n · X(1)",
            "x": [1.0, end],
            "y": [first.throughput, first.throughput * end],
            "line": {"color": INK, "width": 1, "dash": "dot"},
            "hoverinfo": "skip",
        }
    ]


def _values(series: ScalingSeries) -> Part:
    drawn = thin(series.values)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "values",
        "x": [value.n for value in drawn],
        "y": [value.throughput for value in drawn],
        "marker": {"color": INK, "size": 5, "opacity": 0.35},
        "hovertext": [
            f"n = {value.n}{'' if value.block is None else f', block {value.block}'}: {number(value.throughput)}"
            for value in drawn
        ],
        "hoverinfo": "text",
    }


def _means(series: ScalingSeries) -> Part:
    points = series.scaling.points
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "means",
        "x": [point.n for point in points],
        "y": [point.throughput for point in points],
        "error_y": {
            "array": [0.0 if point.high is None else point.high - point.throughput for point in points],
            "arrayminus": [0.0 if point.low is None else point.throughput - point.low for point in points],
            "color": INK,
            "thickness": 1.2,
        },
        "marker": {"color": "#24292f", "size": 8, "symbol": "diamond"},
        "hovertext": [f"n = {point.n}: {number(point.throughput)}" for point in points],
        "hoverinfo": "text",
    }
