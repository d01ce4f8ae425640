"""Compares the effects in a model with those on the machine. Pure.

An effect is a ratio: the cycles of one build of a function over those of another, or the value of a benchmark in one
kernel over that in another. A good model has the right sign if the difference on the machine exceeds its noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.base.frozen import Frozen
from kdyno.base.text import percent

LEVELS = (0.0, 0.01, 0.02, 0.05, 0.1)
"""Sizes of effects as fractions: sign errors are counted among the effects of at least this size."""
NONE = 1e-9
"""The smallest ln(ratio) that counts as a difference in the model."""


@dataclass(frozen=True)
class Effect:
    """One ratio on the machine and in the model."""

    name: str
    measured: float
    """The ratio on the machine."""
    clear: bool
    """Whether the ratio exceeds the noise of the machine."""
    modelled: float

    @property
    def sign_error(self) -> bool:
        """Return whether the model is faster and the machine clearly slower, or the reverse."""
        return self.clear and _sign(self.measured) * _sign(self.modelled) < 0

    @property
    def missed(self) -> bool:
        """Return whether the model has no difference, and the machine clearly has one."""
        return self.clear and _sign(self.modelled) == 0

    @property
    def error(self) -> float:
        """The error |modelled / measured - 1|."""
        return abs(self.modelled / self.measured - 1)

    @property
    def size(self) -> float:
        """The difference to the slower of the two on the machine: 0.1 is 10 %, whichever is slower."""
        return math.expm1(abs(math.log(self.measured)))


class EffectLevel(Frozen):
    """Clear effects of at least some size."""

    least: float
    """The least size as a fraction."""
    effects: int
    sign_errors: int
    missed: int


class Agreement(Frozen):
    """The agreement of a model's effects with those of the machine."""

    effects: int
    clear: int
    """The number of effects beyond the noise of the machine."""
    sign_errors: int
    """The number of sign errors among the clear effects."""
    missed: int
    """The number of clear effects without a difference in the model."""
    pearson: float | None
    """The correlation of ln(modelled) and ln(measured) over all effects; None if one of them is constant."""
    spearman: float | None
    slope: float | None
    """The slope of ln(modelled) on ln(measured) by least squares: 1 for a model that neither dampens nor exaggerates.
    """
    median_error: float
    """The median of |modelled / measured - 1|."""
    median_of_none: float
    """The median error of a model without differences: |1 / measured - 1|."""
    levels: tuple[EffectLevel, ...]


def agreement(effects: Sequence[Effect]) -> Agreement:
    """Return the agreement of the effects; there must be at least one."""
    measured = np.log([effect.measured for effect in effects])
    modelled = np.log([effect.modelled for effect in effects])
    pearson = spearman = slope = None
    if len(effects) > 2 and np.ptp(measured) > NONE and np.ptp(modelled) > NONE:
        from scipy.stats import pearsonr, spearmanr

        pearson = float(pearsonr(measured, modelled).statistic)
        spearman = float(spearmanr(measured, modelled).statistic)
        slope = float(np.polyfit(measured, modelled, 1)[0])
    return Agreement(
        effects=len(effects),
        clear=sum(effect.clear for effect in effects),
        sign_errors=sum(effect.sign_error for effect in effects),
        missed=sum(effect.missed for effect in effects),
        pearson=pearson,
        spearman=spearman,
        slope=slope,
        median_error=float(np.median([effect.error for effect in effects])),
        median_of_none=float(np.median([abs(1 / effect.measured - 1) for effect in effects])),
        levels=tuple(_level(effects, least) for least in LEVELS),
    )


def _level(effects: Sequence[Effect], least: float) -> EffectLevel:
    large = [effect for effect in effects if effect.clear and effect.size >= least]
    return EffectLevel(
        least=least,
        effects=len(large),
        sign_errors=sum(effect.sign_error for effect in large),
        missed=sum(effect.missed for effect in large),
    )


def _sign(ratio: float) -> int:
    log = math.log(ratio)
    return 0 if abs(log) < NONE else int(math.copysign(1, log))


def summary(result: Agreement) -> str:
    """Return one line about an agreement."""
    correlated = "no correlation: one of the two never differs"
    if result.pearson is not None and result.spearman is not None and result.slope is not None:
        correlated = (
            f"correlation of logarithms {result.pearson:.2f} (ranks {result.spearman:.2f}), slope {result.slope:.2f}"
        )
    return (
        f"{result.effects:,} ratios, {correlated}, median error {_percent(result.median_error)} "
        f"(of a model without differences {_percent(result.median_of_none)})"
    )


def sign_lines(result: Agreement) -> list[str]:
    """Return the lines with the number of sign errors by the size of effects."""
    rows = [f"{result.clear:,} of {result.effects:,} differ beyond the machine's noise"]
    for level in result.levels:
        label = "of these" if level.least == 0 else f"of at least {_percent(level.least)}"
        missed = f", {level.missed:,} not seen" if level.missed else ""
        rows.append(f"  {label}: {level.effects:,}, wrong sign {level.sign_errors:,}{_share(level)}{missed}")
    return rows


def worst(effects: Sequence[Effect], count: int) -> list[Effect]:
    """Return the clear effects with the wrong sign, the largest first."""
    return sorted((effect for effect in effects if effect.sign_error), key=lambda effect: -effect.size)[:count]


def _share(level: EffectLevel) -> str:
    return f" ({_percent(level.sign_errors / level.effects)})" if level.effects else ""


def _percent(part: float) -> str:
    return f"{percent(part)} %"
