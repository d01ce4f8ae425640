"""A search in a space of recipes: speed against size with the Pareto front, and which knobs matter."""

from __future__ import annotations

import math

from kdyno.base.text import format_signed, percent
from kdyno.report.figures.style import (
    COLOURS,
    INK,
    VARIANT_COLOURS,
    Figure,
    Part,
    figure,
    legend_above,
    text,
)
from kdyno.tune.space.model import KnobImportance, SearchResult, TriedRecipe

REST, BAR, FRONT = (VARIANT_COLOURS[place] for place in (0, 1, 3))
ROW_PIXELS = 26


def pareto(result: SearchResult) -> Figure | None:
    """Return speed over the size of the text, in percent of the baseline's; None if no kernel was built."""
    sized = [recipe for recipe in result.recipes if "text" in recipe.measured]
    if not sized:
        return None
    front = [recipe for recipe in sized if recipe.is_on_front]
    others = [recipe for recipe in sized if not recipe.is_on_front]
    return figure(
        [
            _points("other recipes", others, REST),
            _points("Pareto front", front, FRONT),
            {
                "type": "scatter",
                "mode": "markers",
                "name": "baseline",
                "x": [0.0],
                "y": [0.0],
                "marker": {"color": INK, "size": 11, "symbol": "diamond"},
                "hoverinfo": "name",
            },
        ],
        460,
        margin={"l": 64, "r": 10, "t": 40, "b": 46},
        legend=legend_above(),
        xaxis={"title": {"text": "size of the text, % more than the baseline's (left is smaller)"}},
        yaxis={"title": {"text": "speed, % more than the baseline's (up is faster)"}},
    )


def _size(recipe: TriedRecipe) -> float:
    return 100 * math.expm1(-recipe.measured["text"].value)


def _points(name: str, recipes: list[TriedRecipe], colour: str) -> Part:
    speeds = [recipe.measured["speed"] for recipe in recipes]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [_size(recipe) for recipe in recipes],
        "y": [100 * speed.gain for speed in speeds],
        "error_y": {"array": [100 * speed.error for speed in speeds], "color": colour, "thickness": 1},
        "marker": {"color": colour, "size": 7},
        "hovertext": [
            f"{text(recipe.name)}: {format_signed(recipe.measured['speed'].gain)} % speed, "
            f"{format_signed(_size(recipe) / 100)} % text"
            for recipe in recipes
        ],
        "hoverinfo": "text",
    }


def importance(knobs: tuple[KnobImportance, ...]) -> Figure:
    """Return the part of the variance of gains that each knob has, the largest on top, with 95 % intervals."""
    shown = list(reversed(knobs))
    bars = {
        "x": [100 * knob.share for knob in shown],
        "y": [text(knob.key) for knob in shown],
        "marker": {"color": BAR},
        "hovertext": [f"{text(knob.key)}: {percent(knob.share)} % of the variance" for knob in shown],
    }
    more = [100 * (knob.high - knob.share) for knob in shown]
    less = [100 * (knob.share - knob.low) for knob in shown]
    return _bars(bars, more, less, {"title": {"text": "part of the variance of gains, %"}, "rangemode": "tozero"})


def losses(knobs: tuple[KnobImportance, ...]) -> Figure | None:
    """Return what the best recipe would lose without each of its choices; None if it has the baseline's alone."""
    shown = [knob for knob in reversed(knobs) if knob.loss is not None]
    if not shown:
        return None
    bars = {
        "x": [_percent(knob.loss) for knob in shown],
        "y": [text(knob.choice) for knob in shown],
        "marker": {"color": [COLOURS["slower" if (knob.loss or 0.0) > 0 else "faster"] for knob in shown]},
        "hovertext": [f"without {text(knob.choice)}: {_percent(knob.loss):+.2g} % speed" for knob in shown],
    }
    more = [_percent(knob.loss_low) - _percent(knob.loss) for knob in shown]
    less = [_percent(knob.loss) - _percent(knob.loss_high) for knob in shown]
    return _bars(bars, more, less, {"title": {"text": "change of speed without the choice, %"}})


def _bars(bars: Part, more: list[float], less: list[float], axis: Part) -> Figure:
    """Return horizontal bars, a row each, with intervals from `less` below the value to `more` above it."""
    intervals = {"array": more, "arrayminus": less, "color": INK, "thickness": 1.2}
    return figure(
        [{"type": "bar", "orientation": "h", "error_x": intervals, "hoverinfo": "text", **bars}],
        110 + ROW_PIXELS * len(bars["y"]),
        margin={"l": 10, "r": 20, "t": 10, "b": 46},
        xaxis=axis,
        yaxis={"automargin": True},
    )


def _percent(loss: float | None) -> float:
    """Return the change in percent of a loss, which is the logarithm of a ratio."""
    return 100 * math.expm1(-(loss or 0.0))
