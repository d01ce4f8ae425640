"""Dunnett's distribution: the largest |t| of k means against one control, all with one estimate of the spread.

Given the control's mean and the spread, the k comparisons are independent: a double integral by Gauss and Legendre,
for any k (Dunnett 1955). scipy has it as a multivariate t, by random points and for k up to some tens.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

import numpy as np
import scipy
from scipy import special

from kdyno.judge.stats.diagnostics.studentized import MEANS, errors

REACH = 9.0
"""Standard deviations up to which the control's mean is integrated."""


def tail(t: float, sizes: tuple[int, ...], control: int, df: float) -> float:
    """Return the chance that any of the groups, of these sizes, is |t| or more from a control of size `control`.

    Absolute error below 1e-8; never more than Bonferroni, nor less than one comparison alone.
    """
    alone = 2 * float(scipy.stats.t.sf(t, df))
    s, weight = errors(df)
    z = REACH * MEANS[0]
    inside = np.full((len(s), len(z)), REACH) * MEANS[1] * scipy.stats.norm.pdf(z)
    for size, groups in Counter(sizes).items():
        load = math.sqrt(size / (size + control))  # its square is the correlation of two groups of this size
        own = math.sqrt(control / (size + control))
        reach = t * s[:, None]
        between = special.ndtr((reach + load * z) / own) - special.ndtr((-reach + load * z) / own)
        inside *= between**groups
    return float(np.clip(1 - weight @ inside.sum(axis=1), alone, min(1.0, len(sizes) * alone)))


@lru_cache(maxsize=1024)
def quantile(confidence: float, sizes: tuple[int, ...], control: int, df: float) -> float:
    """Return the |t| that all groups stay below with this confidence: more than one needs, less than Bonferroni asks
    for.
    """
    low, high = (float(scipy.stats.t.isf((1 - confidence) / 2 / k, df)) for k in (1, len(sizes)))
    if len(sizes) == 1:
        return low
    return float(
        scipy.optimize.brentq(lambda t: tail(t, sizes, control, df) - (1 - confidence), 0.99 * low, 1.01 * high)
    )
