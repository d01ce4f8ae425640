"""The result of a search as text. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kdyno.base.text import clean, format_count, format_signed, percent
from kdyno.runs.outlook import span
from kdyno.tune.confirm import ConfirmedEffect, ConfirmedWinner
from kdyno.tune.space.model import KnobImportance, SearchResult, TriedRecipe


def lines(result: SearchResult, top: int) -> Iterator[str]:
    """Yield the summary, the `top` best recipes, the knobs, the failures, what was promised and found, the claim."""
    of = f"{result.space:,} recipes" if result.is_exact else f"{result.space:,} combinations"
    yield (
        f"{format_count(len(result.recipes), 'recipe')} of {of} measured, "
        f"{format_count(result.builds, 'kernel')} built, {span(result.seconds)} of builds and boots; lane {result.lane}"
    )
    if result.recipes:
        yield ""
        yield f"{'speed':>8} {'error':>7} {'text':>8} {'build':>8}  recipe"
        yield from (_row(recipe) for recipe in result.recipes[:top])
        if len(result.recipes) > top:
            yield f"... and {len(result.recipes) - top:,} more"
        yield "* is on the Pareto front: no other recipe is better in one column and not worse in the others"
    if result.knobs:
        yield ""
        yield f"{'share of variance':<24} {'interval':<16} {'best without it':<28} knob"
        yield from map(_knob_row, result.knobs)
    for failure in result.failures:
        yield f"left out at the {failure.stage}: {clean(failure.name)}: {clean(failure.reason)}"
    for choice in result.left_out:
        yield f"not tried for its risk: {clean(choice)}"
    yield from _confirmations(result)
    yield result.claim


def _row(recipe: TriedRecipe) -> str:
    speed = recipe.measured["speed"]
    values = [f"{format_signed(speed.gain)} %", f"{percent(speed.error)} %"]
    # A smaller text is a gain: the logarithm of the ratio is shown as the change of the size itself.
    for name in ("text", "build"):
        measured = recipe.measured.get(name)
        values.append("-" if measured is None else f"{format_signed(math.expm1(-measured.value))} %")
    mark = "*" if recipe.is_on_front else " "
    return f"{values[0]:>8} {values[1]:>7} {values[2]:>8} {values[3]:>8} {mark}{clean(recipe.name)}"


def _knob_row(knob: KnobImportance) -> str:
    share, interval = f"{percent(knob.share)} %", f"{percent(knob.low)} to {percent(knob.high)} %"
    loss = ""
    if knob.loss is not None and knob.loss_low is not None and knob.loss_high is not None:
        low, high = sorted((math.expm1(-knob.loss_high), math.expm1(-knob.loss_low)))
        loss = f"{format_signed(math.expm1(-knob.loss))} % ({format_signed(low)} to {format_signed(high)})"
    return f"{share:<24} {interval:<16} {loss:<28} {clean(knob.choice or knob.key)}"


def _confirmations(result: SearchResult) -> Iterator[str]:
    best = result.best
    if best is None or result.confirmed is None:
        return
    yield ""
    yield f"promised by the search: {format_signed(best.measured['speed'].gain)} % speed"
    yield _confirmation("found on fresh seeds and link orders", result.confirmed)
    if result.held_out:
        yield _confirmation("found on tests held out", result.held_out)


def _confirmation(words: str, confirmed: ConfirmedWinner) -> str:
    mean: ConfirmedEffect | None = confirmed.mean
    if mean is None or mean.found is None or mean.low is None or mean.high is None:
        return f"{words}: no mean over the benchmarks (run {confirmed.confirmation[:12]})"
    return (
        f"{words}: {format_signed(mean.found)} %, 95 % interval {format_signed(mean.low)} to "
        f"{format_signed(mean.high)} %, {mean.verdict} (run {confirmed.confirmation[:12]})"
    )
