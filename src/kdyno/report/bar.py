"""An interval drawn in one line of text, along an axis that all lines of a report share."""

from __future__ import annotations

import math

from kdyno.judge.verdicts.rows import Span
from kdyno.report.view import Axis, SideNames


def column(axis: Axis, gain: float, width: int) -> int:
    """Return the column of a gain (a logarithm) among `width` columns; a gain beyond the axis gets the end column."""
    within = min(max(gain, axis.low), axis.high)
    return round((within - axis.low) / (axis.high - axis.low) * (width - 1))


def bar(span: Span | None, axis: Axis, margin: float, width: int) -> str:
    """Return `width` characters: `  ·  │  · ├─●─┤  `; without a span, only the axis.

    The line is no effect, the dots are the margin, `‹` and `›` ends of an interval that goes on beyond the axis.
    """
    cells = [" "] * width
    for edge in (-math.log1p(margin), math.log1p(margin)):
        cells[column(axis, edge, width)] = "·"
    zero = column(axis, 0.0, width)
    cells[zero] = "│"
    if span is None:
        return "".join(cells)
    low, high = column(axis, span.low, width), column(axis, span.high, width)
    for position in range(low, high + 1):
        cells[position] = "┼" if position == zero else "─"
    if low < high:
        cells[low] = "‹" if span.low < axis.low else "├"
        cells[high] = "›" if span.high > axis.high else "┤"
    cells[column(axis, span.mid, width)] = "●"
    return "".join(cells)


def heading(axis: Axis, sides: SideNames, width: int) -> str:
    """Return the title of a column of bars, which says which side of the line is better."""
    zero = column(axis, 0.0, width)
    before, right = zero, width - zero - 1
    of_left, of_right = (
        name if len(name) <= room else "" for name, room in ((sides.left, before), (sides.right, right))
    )
    return of_left.rjust(before) + "│" + of_right.ljust(right)
