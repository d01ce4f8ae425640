"""The common parts of all plots: colours, type, and the way onto the page."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import plotly.graph_objects as go  # type: ignore[import-untyped]

from kdyno.base.text import clean
from kdyno.judge.verdicts.model import BootValue, Report

Figure = Any
"""plotly has no types."""
Part = dict[str, Any]
"""A trace, an axis or a note, in plotly's own terms."""
Item = TypeVar("Item")

GOOD, BAD, OTHER, EQUIVALENT, OPEN = "#17713f", "#b32d23", "#7f3692", "#2f629c", "#7a5d00"
COLOURS: dict[str, str] = {
    **dict.fromkeys(("faster", "fewer", "better"), GOOD),
    **dict.fromkeys(("slower", "more", "worse"), BAD),
    **dict.fromkeys(("higher", "lower"), OTHER),
    **{"equivalent": EQUIVALENT, "undecided": OPEN},
}
"""Colours of verdicts, as the style has them for words. No other part of a plot has these, because they are themed."""
VARIANT_COLOURS = ("#8a8f98", "#3b6ea8", "#d9822b", "#1a7f4b", "#8e5ba6", "#c0362c", "#2a9d9d", "#6b4f3a")
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "triangle-down", "star", "hexagon", "x", "pentagon")
"""Symbols of layouts."""
BLACK = "#24292f"
FONT = {"family": "Inter, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif", "size": 12, "color": BLACK}
GRID = "#e6e8eb"
INK = "#57606a"
FAINT = "#dfe2e6"
THEMED: dict[str, str] = {
    **{BLACK: "--ink", INK: "--soft", GRID: "--line", FAINT: "--line"},
    **{GOOD: "--good", BAD: "--bad", OTHER: "--other", EQUIVALENT: "--blue", OPEN: "--open"},
}
"""Colours of plots that the page's script replaces by the style's own, which differ in the dark."""
BAND = {"fillcolor": "#3b6ea8", "opacity": 0.08, "line": {"width": 0}, "layer": "below", "type": "rect"}
"""The colour of the equivalence margin."""
CONFIG = {"displaylogo": False, "responsive": True, "modeBarButtons": [["toImage", "zoom2d", "pan2d", "resetScale2d"]]}
"""The buttons: none that would send data anywhere."""

SIGNIFICANT = 3
"""The fewest significant digits of a number in a plot; a hover text shows it."""
STEPS = 500
"""The number of places along an axis that numbers distinguish; a plot is a few hundred pixels high."""
MOST_POINTS = 300
"""Points that are drawn of one variant: more would hide each other, and make the page large."""


def colours(report: Report) -> dict[str, str]:
    """Return the colour of each variant, the same in all plots."""
    return {name: VARIANT_COLOURS[place % len(VARIANT_COLOURS)] for place, name in enumerate(report.variants)}


def text(name: str) -> str:
    """Return a name as plotly shows it: cleaned, and escaped (plotly knows &lt; and &amp;, but not &quot;)."""
    return html.escape(clean(name), quote=False)


def figure(traces: Sequence[Part], height: int, **layout: Any) -> Figure:
    """Return a plot from its traces. Axes get the report's grid unless they say otherwise."""
    axes = {name: {"gridcolor": GRID, "zerolinecolor": GRID, **axis} for name, axis in _axes(layout).items()}
    steps = _find_steps(traces, axes)
    shown = [_round_trace(trace, steps) for trace in traces]
    clear = "rgba(0,0,0,0)"
    common = {"template": "none", "font": FONT, "paper_bgcolor": clear, "plot_bgcolor": clear}
    return go.Figure(data=shown, layout=common | {"height": height} | layout | axes)


def hover_template(says: str, values: Sequence[BootValue] = ()) -> Part:
    """Return what a trace shows of a point: its variant, its block and layout if it has them, and what the template
    `says`, such as `gcc-12, block 3, layout 1: 481.2`. The browser makes the text: written, they are half of a page.
    """
    places = [_place(value) for value in values]
    texts = {"text": places} if any(places) else {}
    return {**texts, "hovertemplate": f"%{{fullData.name}}{'%{text}' if texts else ''}{says}<extra></extra>"}


def _place(value: BootValue) -> str:
    block = f", block {value.block}" if value.block is not None else ""
    return block + (f", layout {value.layout}" if value.layout is not None else "")


def legend_above(y: float = 1.0) -> Part:
    return {"orientation": "h", "yanchor": "bottom", "y": y, "x": 0}


def thin(values: Sequence[Item], most: int = MOST_POINTS) -> list[Item]:
    """Return at most `most` of the values, evenly spread over their order."""
    return list(values[:: max(1, -(-len(values) // most))])


def to_json(figure: Figure) -> str:
    """Return a figure as JSON that a script element may hold: nothing in it ends the element."""
    return str(figure.to_json()).replace("<", "\\u003c").replace(">", "\\u003e")


def _find_steps(traces: Sequence[Part], axes: Mapping[str, Part]) -> dict[str, float]:
    """Return for each linear axis, by a trace's name for it such as `x2`, the step that its numbers are rounded to."""
    ends: dict[str, list[float]] = {}
    for trace in traces:
        for letter in "xy":
            numbers = [value for value in trace.get(letter, ()) if isinstance(value, float | int)]
            ends.setdefault(_axis_of(trace, letter), []).extend([min(numbers), max(numbers)] if numbers else [])
    logarithmic = {name for name in ends if axes.get(f"{name[0]}axis{name[1:]}", {}).get("type") == "log"}
    return {name: (max(own) - min(own)) / STEPS for name, own in ends.items() if own and name not in logarithmic}


def _round_trace(trace: Part, steps: Mapping[str, float]) -> Part:
    """Return a trace whose numbers have the digits that its axes show."""
    rounded = dict(trace)
    for letter in "xy":
        step = steps.get(_axis_of(trace, letter), 0.0)
        if letter in trace:
            rounded[letter] = [_round_value(value, step) for value in trace[letter]]
        if error := trace.get(f"error_{letter}"):
            lengths = {
                name: [_round_value(value, step) for value in part] if isinstance(part, list) else part
                for name, part in error.items()
            }
            rounded[f"error_{letter}"] = lengths
    return rounded


def _axis_of(trace: Part, letter: str) -> str:
    return str(trace.get(f"{letter}axis", letter))


def _round_value(value: Any, step: float) -> Any:
    """Return a number to three significant digits, or to as many more as a step shows; anything else as it is."""
    if not isinstance(value, float) or not math.isfinite(value) or not value:
        return value
    exponent = math.floor(math.log10(abs(value)))
    decimals = SIGNIFICANT - 1 - exponent
    if step:
        decimals = max(decimals, math.ceil(-math.log10(step)))
    rounded = round(value, decimals)
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _axes(layout: Mapping[str, Any]) -> dict[str, Part]:
    return {name: axis for name, axis in layout.items() if name.startswith(("xaxis", "yaxis"))}
