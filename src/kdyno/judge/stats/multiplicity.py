"""Many comparisons at once: p-values adjusted for the size of their family."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from kdyno.base.measurement import Correction


def adjust(ps: Sequence[float | None], correction: Correction = "holm") -> list[float | None]:
    """Adjust p-values as one family; None stays None.

    holm (Holm 1979): the probability of even one false verdict is at most alpha, whatever the dependences. bh
    (Benjamini & Hochberg 1995): at most the share alpha of the verdicts is false, on average.
    """
    present = np.array([p for p in ps if p is not None], dtype=float)
    results = iter((_holm(present) if correction == "holm" else scipy.stats.false_discovery_control(present)).tolist())
    return [None if p is None else next(results) for p in ps]


def _holm(ps: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return p-values adjusted after Holm. statsmodels' multipletests computes the same, but collects garbage on each
    call: a fifth of a second.
    """
    order = np.argsort(ps)
    stepped = np.maximum.accumulate(ps[order] * np.arange(len(ps), 0, -1))
    results = np.empty_like(ps)
    results[order] = np.minimum(stepped, 1.0)
    return results
