"""The sources of the noise: components of variance of layouts, boots and iterations.

Nested analysis of variance by its moments (Searle, Casella & McCulloch 1992, 3.4), after Kalibera & Jones (ISMM 2013);
but of boots' medians, which the judge compares, where theirs is of means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from kdyno.base.arrays import Values
from kdyno.base.frozen import Frozen

Pair = tuple[Values, Values]
"""Logarithms of the readings of a variant's boot and of the baseline's boot in one block; shapes (iterations,)."""


class Components(Frozen):
    """Variances of the log-ratio of two boots' medians, by the level that makes them; negative estimates become 0."""

    layout: float | None
    """The variance between layouts of one variant; None if fewer than two were measured: it then belongs to no
    component.
    """
    boot: float
    medians: tuple[float, ...]
    """The variance added within boots if each has 1, 2, ... readings, up to the `iterations` of the pilot; empty if
    each boot has a single reading: it is then part of `boot`.
    """
    layouts: int
    boots: int
    iterations: int
    """Readings of a boot, on (harmonic) average."""

    def variance_within(self, iterations: float) -> float:
        """Return the variance added within boots of so many readings; beyond those of the pilot it falls as their
        number grows.
        """
        if not self.medians:
            return 0.0
        if iterations <= self.iterations:
            return self.medians[int(iterations) - 1]
        return self.medians[-1] * self.iterations / iterations


def components(nested: Sequence[Sequence[Pair]]) -> Components | None:
    """Return the components from pairs of boots, [layout][block].

    Levels need not be balanced. The part that the two boots of a block share is in neither component. None with fewer
    than two pairs in all, or without two in any layout.
    """
    pairs = [[pair for pair in layout if all(len(side) for side in pair)] for layout in nested]
    pairs = [layout for layout in pairs if layout]
    every = [pair for layout in pairs for pair in layout]
    df_boot = len(every) - len(pairs)
    if df_boot < 1:
        return None
    iterations = max(1, round(1 / float(np.mean([1 / len(side) for pair in every for side in pair]))))
    centres = [np.array([np.median(ours) - np.median(theirs) for ours, theirs in layout]) for layout in pairs]
    between = sum(float(((of_layout - of_layout.mean()) ** 2).sum()) for of_layout in centres) / df_boot
    ours, theirs = (median_variance(list(side), iterations) for side in zip(*every, strict=True))
    within = ours + theirs
    # what boots were seen to differ by holds for the pilot's readings, whatever is thought to be within them
    known = min(between, float(within[-1]))
    layout = None
    if len(pairs) > 1:
        of_layouts = np.array([of_layout.mean() for of_layout in centres])
        per_layout = float(np.mean([1 / len(of_layout) for of_layout in centres]))
        layout = max(0.0, float(np.var(of_layouts, ddof=1)) - per_layout * between)
    several = any(len(side) > 1 for pair in every for side in pair)
    return Components(
        layout=layout,
        boot=between - known,
        medians=tuple(np.maximum(0.0, known + within - within[-1]).tolist()) if several else (),
        layouts=len(pairs),
        boots=len(every),
        iterations=iterations,
    )


def median_variance(boots: Sequence[Values], most: int) -> Values:
    """Return the variance of the median of 1, 2, ..., `most` readings around their boot; shape (most,).

    The exact bootstrap (Maritz & Jarrett 1978) of all boots' residuals: how often each of the sorted residuals is the
    median of so many drawn ones. In simulations it is right to 20 % for up to as many readings as a boot has.
    """
    residuals = [_residuals(np.sort(readings)) for readings in boots if len(readings) > 1]
    if not residuals:
        return np.zeros(most)
    pool = np.sort(np.concatenate(residuals))
    of_beta = (np.arange(1, most + 1)[:, None] + 1) / 2
    chances = np.diff(special.betainc(of_beta, of_beta, np.arange(len(pool) + 1) / len(pool)), axis=1)
    variances: Values = chances @ pool**2 - (chances @ pool) ** 2
    return variances


def _residuals(readings: Values) -> Values:
    """Return each reading's distance from the median of the others, all sorted, in the size of distances from the
    truth.

    The median's distance from itself would be 0 in each boot: a peak amid the pool that readings don't have.
    """
    others = len(readings) - 1
    ranks = np.arange(others + 1)
    below, above = (others - 1) // 2, others // 2  # the middle of the others; behind the one left out it is one further
    medians = (readings[below + (below >= ranks)] + readings[above + (above >= ranks)]) / 2
    residuals: Values = (readings - medians) * math.sqrt(others / (others + 1))
    return residuals
