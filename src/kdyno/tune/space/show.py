"""The result of a search as text. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from kdyno.base.text import clean, format_count, format_signed, percent
from kdyno.runs.outlook import span
from kdyno.tune.confirm import ConfirmedWinner
from kdyno.tune.space.model import KnobImportance, SearchResult, TriedRecipe

RECIPE_COLUMNS = ("speed", "error", "text", "build", "risk", "lane", "recipe")
KNOB_COLUMNS = ("share", "95 % interval", "best without it", "95 % interval", "knob")
FRONT = "*"
FRONT_NOTE = f"{FRONT} is on the Pareto front: no other recipe is better in one column and not worse in the others"


def lines(result: SearchResult, top: int) -> Iterator[str]:
    """Yield the summary, the `top` best recipes, the knobs, the failures, what was promised and found, the claim."""
    yield summary(result)
    if result.recipes:
        yield ""
        yield from _table(RECIPE_COLUMNS, [recipe_cells(recipe) for recipe in result.recipes[:top]])
        if len(result.recipes) > top:
            yield f"... and {len(result.recipes) - top:,} more"
        yield FRONT_NOTE
    if result.knobs:
        yield ""
        yield "part of the variance of gains that a knob has, and the best recipe without it, by the fitted effects:"
        yield from _table(KNOB_COLUMNS, [knob_cells(knob) for knob in result.knobs])
    for failure in result.failures:
        yield f"left out at the {failure.stage}: {clean(failure.name)}: {clean(failure.reason)}"
    for choice in result.left_out:
        yield f"not tried for its risk: {clean(choice)}"
    if result.confirmed:
        yield ""
        yield from confirmations(result)
    yield result.claim


def summary(result: SearchResult) -> str:
    """Return what was searched, and with which effort."""
    of = f"{result.space:,} recipes" if result.is_exact else f"{result.space:,} combinations"
    return (
        f"{format_count(len(result.recipes), 'recipe')} measured of {of}, "
        f"{format_count(result.builds, 'kernel')} built, {span(result.seconds)} of builds and boots; lane {result.lane}"
    )


def recipe_cells(recipe: TriedRecipe) -> list[str]:
    """Return the cells of a recipe: changes of speed, of the size of the text and of the time of its build."""
    speed = recipe.measured["speed"]
    # Gains are logarithms of ratios, and a smaller size is a gain: the change of the size itself is shown.
    changes = [
        f"{format_signed(math.expm1(-recipe.measured[name].value))} %" if name in recipe.measured else ""
        for name in ("text", "build")
    ]
    mark = f"{FRONT} " if recipe.is_on_front else ""
    risk = "yes" if recipe.risks else ""
    return [
        f"{format_signed(speed.gain)} %",
        f"{percent(speed.error)} %",
        *changes,
        risk,
        recipe.clock,
        f"{mark}{clean(recipe.name)}",
    ]


def knob_cells(knob: KnobImportance) -> list[str]:
    """Return the cells of a knob: its part of the variance, and the change of the best recipe without its choice."""
    loss = interval = ""
    if knob.loss is not None and knob.loss_low is not None and knob.loss_high is not None:
        low, high = math.expm1(-knob.loss_high), math.expm1(-knob.loss_low)
        loss, interval = (
            f"{format_signed(math.expm1(-knob.loss))} %",
            f"{format_signed(low)} to {format_signed(high)} %",
        )
    share = f"{percent(knob.low)} to {percent(knob.high)} %"
    return [f"{percent(knob.share)} %", share, loss, interval, clean(knob.choice or knob.key)]


def confirmations(result: SearchResult) -> Iterator[str]:
    """Yield what the search promised of the best recipe, and what its confirmation found."""
    best = result.best
    if best is None or result.confirmed is None:
        return
    yield f"promised by the search: {format_signed(best.measured['speed'].gain)} % speed"
    yield _confirmation("found on fresh seeds and link orders", result.confirmed)
    if result.held_out:
        yield _confirmation("found on tests held out", result.held_out)


def _confirmation(words: str, confirmed: ConfirmedWinner) -> str:
    mean = confirmed.mean
    if mean is None or mean.found is None or mean.low is None or mean.high is None:
        return f"{words}: no mean over the benchmarks (run {confirmed.confirmation[:12]})"
    return (
        f"{words}: {format_signed(mean.found)} %, 95 % interval {format_signed(mean.low)} to "
        f"{format_signed(mean.high)} %, {mean.verdict} (run {confirmed.confirmation[:12]})"
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose last column is a text. A column without any cells is left out."""
    places = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    widths = {place: max(len(row[place]) for row in [columns, *rows]) for place in places}
    *figures, last = places
    for row in [columns, *rows]:
        yield "  ".join([*(row[place].rjust(widths[place]) for place in figures), row[last]]).rstrip()
