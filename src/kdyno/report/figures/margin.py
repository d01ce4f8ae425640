"""Intervals against the equivalence margin: how far each of them is from being inside, or from leaving it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kdyno.judge.verdicts.model import Report
from kdyno.judge.verdicts.rows import VerdictRow
from kdyno.report import view
from kdyno.report.figures.forest import ROW_PIXELS, heights, rows_axis
from kdyno.report.figures.style import BAND, COLOURS, FAINT, INK, Figure, Part, figure, legend_above, text

TICKS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
LEAST = math.asinh(2.0)
"""Margins that the axis shows at least to either side."""


def against_margin(report: Report, variant: str) -> Figure | None:
    """Return the intervals of a variant in units of the margin, sorted by effect; None without a margin or an interval.

    The unit is ln(1 + margin), so that ±1 is exactly what *equivalent* means. The scale is an inverse hyperbolic sine,
    even within the margin and logarithmic far from it: an effect of 60 margins and one of 0.2 are both readable. Behind
    each interval is the range that the run could not have seen: if that is wider than the margin, undecided was to be
    expected.
    """
    rows = sorted(view.plotted_rows(report, variant), key=lambda row: -row.span.mid if row.span else 0)
    unit, better, lines = math.log1p(report.margin), view.sides(report).right, heights(rows)
    if not rows or not unit:
        return None
    spans = [row.span for row in rows if row.span]
    low = min(-LEAST, *(1.06 * place(span.low, unit) for span in spans))
    high = max(LEAST, *(1.06 * place(span.high, unit) for span in spans))
    ticks = [sign * tick for tick in TICKS for sign in ((-1, 1) if tick else (1,))]
    return figure(
        [
            _detectable_band(rows, unit, lines),
            *(_trace(rows, verdict, unit, lines) for verdict in COLOURS),
        ],
        110 + ROW_PIXELS * max(len(rows), 2),
        legend=legend_above(),
        margin={"l": 10, "r": 20, "t": 34, "b": 46},
        shapes=[BAND | {"x0": -math.asinh(1), "x1": math.asinh(1), "y0": 0, "y1": 1, "yref": "y domain"}],
        xaxis={
            "range": [low, high],
            "tickvals": [math.asinh(tick) for tick in ticks],
            "ticktext": [f"{tick:+d}" if tick else "0" for tick in ticks],
            "title": {"text": f"gain in margins of {100 * report.margin:.4g} % (right is {better}; scale compressed)"},
            "zerolinecolor": INK,
        },
        yaxis=rows_axis(rows),
    )


def place(gain: float, unit: float) -> float:
    """Return where a gain (a logarithm) lies on the axis: asinh of it in units of the margin's."""
    return math.asinh(gain / unit)


def _detectable_band(rows: list[VerdictRow], unit: float, lines: Mapping[str, int]) -> Part:
    """Return the smallest effects that could have been seen, to both sides of nothing, as one line broken between
    rows.
    """
    reaches = [(row, math.asinh(math.log1p(row.detectable) / unit)) for row in rows if row.detectable is not None]
    return {
        "type": "scatter",
        "name": "could have been seen",
        "mode": "lines",
        "line": {"color": FAINT, "width": 9},
        "x": [end for _, far in reaches for end in (-far, far, None)],
        "y": [end for row, _ in reaches for end in (lines[row.name], lines[row.name], None)],
        "hoverinfo": "skip",
    }


def _trace(rows: list[VerdictRow], verdict: str, unit: float, lines: Mapping[str, int]) -> Part:
    """Return the rows of one verdict."""
    shown = [(row, row.span) for row in rows if row.verdict == verdict and row.span]
    mid = [place(span.mid, unit) for _, span in shown]
    return {
        "type": "scatter",
        "name": verdict,
        "showlegend": bool(shown),
        "x": mid,
        "y": [lines[row.name] for row, _ in shown],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [place(span.high, unit) - middle for (_, span), middle in zip(shown, mid, strict=True)],
            "arrayminus": [middle - place(span.low, unit) for (_, span), middle in zip(shown, mid, strict=True)],
            "thickness": 1.6,
            "width": 3,
        },
        "mode": "markers",
        "marker": {"color": COLOURS[verdict], "size": 8, "opacity": 1},
        "hovertext": [text(row.sentence) for row, _ in shown],
        "hoverinfo": "text",
    }
