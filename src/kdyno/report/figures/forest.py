"""The forest plot: effects with their intervals, benchmark by benchmark."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kdyno.judge.verdicts.model import Report
from kdyno.judge.verdicts.rows import Span, VerdictRow
from kdyno.report import view
from kdyno.report.figures.style import BAND, COLOURS, INK, Figure, Part, figure, legend_above, text

ROW_PIXELS = 22


def forest(report: Report, variant: str, axis: view.Axis) -> Figure:
    """Return the effects of a variant as gains, with their intervals, in the order of the report, the geometric mean
    last.
    """
    rows = view.plotted_rows(report, variant)
    margin, ticks, lines = math.log1p(report.margin), view.ticks(axis), heights(rows)
    return figure(
        [
            _trace(verdict, colour, [(row, row.span) for row in rows if row.verdict == verdict and row.span], lines)
            for verdict, colour in COLOURS.items()
        ],
        110 + ROW_PIXELS * max(len(rows), 2),
        legend=legend_above(),
        margin={"l": 10, "r": 20, "t": 34, "b": 46},
        shapes=[BAND | {"x0": -margin, "x1": margin, "y0": 0, "y1": 1, "yref": "y domain"}],
        xaxis={
            "range": [axis.low, axis.high],
            "tickvals": [place for place, _ in ticks],
            "ticktext": [called for _, called in ticks],
            "title": {"text": f"gain, % (right is {view.sides(report).right})"},
            "zerolinecolor": INK,
        },
        yaxis=rows_axis(rows),
    )


def rows_axis(rows: list[VerdictRow]) -> Part:
    """Return the vertical axis of a plot with one line for each row, the first on top: see `heights`."""
    return {
        "tickvals": list(range(len(rows))),
        "ticktext": [text(row.name) for row in reversed(rows)],
        "range": [-0.7, len(rows) - 0.3],
        "showgrid": True,
        "zeroline": False,
        "automargin": True,
        "ticks": "",
    }


def heights(rows: list[VerdictRow]) -> dict[str, int]:
    """Return the line of each row by its name, counted from the bottom."""
    return {row.name: line for line, row in enumerate(reversed(rows))}


def _trace(verdict: str, colour: str, shown: list[tuple[VerdictRow, Span]], lines: Mapping[str, int]) -> Part:
    """Return the rows of one verdict."""
    means = [row.is_mean for row, _ in shown]
    return {
        "type": "scatter",
        "name": verdict,
        "showlegend": bool(shown),
        "x": [span.mid for _, span in shown],
        "y": [lines[row.name] for row, _ in shown],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [span.high - span.mid for _, span in shown],
            "arrayminus": [span.mid - span.low for _, span in shown],
            "thickness": 1.6,
            "width": 3,
        },
        "mode": "markers",
        "marker": {
            "color": colour,
            "opacity": 1,
            "size": [11 if mean else 8 for mean in means],
            "symbol": ["diamond" if mean else "circle" for mean in means],
        },
        "hovertext": [text(row.sentence) for row, _ in shown],
        "hoverinfo": "text",
    }
