"""Does a model rank as the machine does? Effects that both have seen, put side by side. Pure.

An effect is a ratio: cycles of one build of a function over those of another, or a benchmark's value in one kernel over
that in another. A model that ranks well has its sign right wherever the machine shows a difference beyond its noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.base.frozen import Frozen
from kdyno.base.text import percent

LEVELS = (0.0, 0.01, 0.02, 0.05, 0.1)
"""Of effects, as fractions: sign errors are counted among those that are at least so large."""
NONE = 1e-9
"""Of ln(ratio): the model says that there is no difference."""


@dataclass(frozen=True)
class Effect:
    """One ratio, in both worlds."""

    name: str
    measured: float
    """On the machine."""
    clear: bool
    """The machine's noise doesn't explain it."""
    modelled: float

    @property
    def sign_error(self) -> bool:
        """Whether the model says faster where the machine clearly says slower, or the other way round."""
        return self.clear and _sign(self.measured) * _sign(self.modelled) < 0

    @property
    def missed(self) -> bool:
        """Whether the model says that nothing differs where the machine clearly says that something does."""
        return self.clear and _sign(self.modelled) == 0

    @property
    def error(self) -> float:
        """|modelled / measured - 1|"""
        return abs(self.modelled / self.measured - 1)

    @property
    def size(self) -> float:
        """By how much the slower is slower on the machine: 0.1 is 10 %, whichever of the two it is."""
        return math.expm1(abs(math.log(self.measured)))


class EffectLevel(Frozen):
    """Clear effects of at least some size."""

    least: float
    """That size, as a fraction."""
    effects: int
    sign_errors: int
    missed: int


class Agreement(Frozen):
    """How well a model's effects agree with the machine's."""

    effects: int
    clear: int
    """Beyond the machine's noise; the others are within it."""
    sign_errors: int
    """Among the clear ones."""
    missed: int
    """Clear ones of which the model says that nothing differs."""
    pearson: float | None
    """Correlation of ln(modelled) and ln(measured), over all effects. None where one of them never differs."""
    spearman: float | None
    slope: float | None
    """Least squares of ln(modelled) on ln(measured): 1 is a model that neither dampens nor exaggerates."""
    median_error: float
    """Median of |modelled / measured - 1|."""
    median_of_none: float
    """The same for a model that knows of no differences: |1 / measured - 1|."""
    levels: tuple[EffectLevel, ...]


def agreement(effects: Sequence[Effect]) -> Agreement:
    """How well the effects agree; there must be at least one."""
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
    """One line about an agreement."""
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
    """How often the sign is wrong, by the size of the effect."""
    rows = [f"{result.clear:,} of {result.effects:,} differ beyond the machine's noise"]
    for level in result.levels:
        which = "of these" if level.least == 0 else f"of at least {_percent(level.least)}"
        missed = f", {level.missed:,} not seen" if level.missed else ""
        rows.append(f"  {which}: {level.effects:,}, wrong sign {level.sign_errors:,}{_share(level)}{missed}")
    return rows


def worst(effects: Sequence[Effect], count: int) -> list[Effect]:
    """The clear effects whose sign is wrong, the largest first."""
    return sorted((effect for effect in effects if effect.sign_error), key=lambda effect: -effect.size)[:count]


def _share(level: EffectLevel) -> str:
    return f" ({_percent(level.sign_errors / level.effects)})" if level.effects else ""


def _percent(part: float) -> str:
    return f"{percent(part)} %"
