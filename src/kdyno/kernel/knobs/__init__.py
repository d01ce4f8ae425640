"""The knobs: one small file each. A new knob is a field of the recipe, a file with its `Knob`, and a row here."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from kdyno.base.errors import UserError
from kdyno.kernel.knobs import (
    block,
    cflags,
    cmdline,
    delegation,
    image,
    kconfig,
    layout_seed,
    lines,
    lto,
    march,
    mtune,
    opt,
    order,
    origin,
    page_size,
    patches,
    profile,
    routines,
    sysctl,
    toolchain,
)
from kdyno.kernel.knobs.base import Contribution, Host, KconfigRequest, Knob, KnobContext, combined
from kdyno.kernel.recipe import Recipe, RecipeSpec

__all__ = [
    "KNOBS",
    "MATRIX_KNOBS",
    "ContradictoryAsks",
    "Contribution",
    "Host",
    "KconfigRequest",
    "KnobContext",
    "check",
    "combined",
    "contributions",
    "decided",
    "located",
]

KNOBS: tuple[Knob, ...] = (
    image.KNOB,
    origin.SOURCE,
    origin.CONFIG,
    toolchain.KNOB,
    opt.KNOB,
    march.KNOB,
    mtune.KNOB,
    lto.KNOB,
    lines.KNOB,
    delegation.KNOB,
    layout_seed.KNOB,
    order.KNOB,
    profile.KNOB,
    cflags.KNOB,
    kconfig.KNOB,
    kconfig.FRAGMENTS,
    routines.KNOB,
    patches.KNOB,
    page_size.KNOB,
    sysctl.KNOB,
    block.KNOB,
    cmdline.KNOB,
)
"""Every field of the recipe, in the order in which they contribute: the last goes last on a command."""

MATRIX_KNOBS = tuple(knob.field for knob in KNOBS if knob.in_matrix)

YIELDING = ("kdyno", "kconfig", "fragment ")
"""Origins that later requests may overrule; between the others a contradiction is an error."""


Written = TypeVar("Written", bound=RecipeSpec)


class ContradictoryAsks(UserError):
    message = "{first} needs CONFIG_{symbol}={wanted}, but {second} asks for {other}"
    hint = "drop one of the two"


def check(recipe: Recipe, host: Host) -> None:
    """Raise UserError for values that knobs refuse before there is a source."""
    for knob in KNOBS:
        knob.check(getattr(recipe, knob.field), host)


def contributions(recipe: Recipe, context: KnobContext, *, only_runtime: bool = False) -> Contribution:
    """Return what the recipe adds to a build, or requests of a kernel that is built; each knob has been checked."""
    compiled = recipe.compiled
    chosen = {knob: getattr(compiled, knob.field) for knob in KNOBS if knob.runtime or not only_runtime}
    for knob, value in chosen.items():
        knob.check(value, context)
    return combined(knob.contribute(value, context) for knob, value in chosen.items())


def located(recipe: Written, base: Path) -> Written:
    """Return the recipe with its paths absolute; relative ones start from `base`. Raise NameUnfit."""
    return recipe.model_copy(update={knob.field: knob.located(getattr(recipe, knob.field), base) for knob in KNOBS})


def decided(contribution: Contribution) -> dict[str, KconfigRequest]:
    """Return one request for each symbol: among inline symbols and fragments the last wins; a knob can't be
    overruled.
    """
    asks: dict[str, KconfigRequest] = {}
    for request in contribution.asks:
        before = asks.get(request.symbol)
        if before and before.value != request.value and not before.by.startswith(YIELDING):
            raise ContradictoryAsks(
                first=before.by, symbol=request.symbol, wanted=before.value, second=request.by, other=request.value
            )
        asks[request.symbol] = request
    return asks
