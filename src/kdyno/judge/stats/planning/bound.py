"""The largest noise that a pilot's measurements allow: an upper bound for the variance that a plan relies on.

Six blocks know a variance badly: one pilot in four sees less than half of it. Graybill & Wang (1980) for sums of mean
squares, Ting et al. (1990) for differences, without their terms of mixed products, which have little effect.
"""

from __future__ import annotations

import math

from scipy import special

from kdyno.judge.stats.planning.levels import Components

CONFIDENCE = 0.85
"""One-sided confidence. With it nine plans of ten keep 80 % power where 90 % was requested of six blocks
(tools/simulate).
"""


def estimate_variance(components: Components, iterations: float, boots: float) -> float:
    """Return the variance of one replicate's logarithm: a layout of so many boots (or one boot) of so many readings."""
    boot = components.boot + components.variance_within(iterations)
    return boot if components.layout is None else components.layout + boot / boots


def upper(components: Components, iterations: float, boots: float, confidence: float = CONFIDENCE) -> float:
    """Return the upper bound of that variance, with this confidence (one-sided).

    With infinitely many readings, or boots, it is the part that the level above them adds.
    """
    of_boots = components.boot + components.variance_within(components.iterations)
    df_boots = components.boots - components.layouts
    # of medians, as simulated: a spread around a median is known by the readings near it
    df_readings = components.boots * math.sqrt(components.iterations)
    # the variance is a weighted sum of almost independent mean squares: those of layouts, of boots and of readings
    of_readings = components.variance_within(iterations) - components.variance_within(components.iterations)
    if components.layout is None:
        parts = [(of_boots, float(df_boots)), (of_readings, df_readings)]
    else:
        boots_per_layout = components.boots / components.layouts
        parts = [
            (components.layout + of_boots / boots_per_layout, components.layouts - 1),
            ((1 / boots - 1 / boots_per_layout) * of_boots, df_boots),
            (of_readings / boots, df_readings),
        ]
    reaches = [part * _reach(part, df, confidence) for part, df in parts if part]
    return estimate_variance(components, iterations, boots) + math.hypot(*reaches)


def _reach(part: float, df: float, confidence: float) -> float:
    """Return the distance of the bound of one mean square from it, as a share: above where it is added, below where
    taken away.
    """
    share = 1 - confidence if part > 0 else confidence
    return df / float(special.chdtri(df, 1 - share)) - 1
