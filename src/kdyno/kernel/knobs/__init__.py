"""The knobs: one small file each. A new knob is a field of the recipe, a file, and a line here."""

from __future__ import annotations

from typing import Any

from kdyno.errors import UserError
from kdyno.kernel.knobs import cmdline, kconfig, layout, lines, lto, march, mtune, opt, patches, toolchain
from kdyno.kernel.knobs.base import Ask, Context, Contribution, combined
from kdyno.kernel.recipe import Recipe

__all__ = ["KNOBS", "Ask", "Context", "ContradictoryAsks", "Contribution", "combined", "contributions", "decided"]

KNOBS: dict[str, Any] = {
    "toolchain": toolchain.contribute,
    "opt": opt.contribute,
    "march": march.contribute,
    "mtune": mtune.contribute,
    "lto": lto.contribute,
    "lines": lines.contribute,
    "layout": layout.contribute,
    "kconfig": kconfig.contribute,
    "fragments": kconfig.contribute_fragments,
    "patches": patches.contribute,
    "cmdline": cmdline.contribute,
}
"""Every field of the recipe, in the order in which they contribute: what comes later goes later on a command."""

YIELDING = ("kdyno", "kconfig", "fragment ")
"""Who may be overruled by whoever asks later; between the others a contradiction is an error."""


class ContradictoryAsks(UserError):
    message = "{first} needs CONFIG_{symbol}={wanted}, but {second} asks for {other}"
    hint = "drop one of the two"


def contributions(recipe: Recipe, context: Context) -> Contribution:
    """What the whole recipe adds to a build; every knob has had its say about whether it can be had."""
    return combined(knob(getattr(recipe, name), context) for name, knob in KNOBS.items())


def decided(contribution: Contribution) -> dict[str, Ask]:
    """One ask for each symbol: among inline symbols and fragments the last wins; a knob can't be overruled."""
    asks: dict[str, Ask] = {}
    for ask in contribution.asks:
        before = asks.get(ask.symbol)
        if before and before.value != ask.value and not before.by.startswith(YIELDING):
            raise ContradictoryAsks(
                first=before.by, symbol=ask.symbol, wanted=before.value, second=ask.by, other=ask.value
            )
        asks[ask.symbol] = ask
    return asks
