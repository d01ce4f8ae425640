"""The mixed model of runs with missing boots: how often its intervals hold the truth.

All draws are seeded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from kdyno.judge.stats.diagnostics.mixed import fit_mixed
from kdyno.judge.stats.estimate import CONFIDENCE
from kdyno.judge.stats.observations import Observations, ReplicateSample

NOISE = 0.01
FEWEST = 2
"""Boots that each variant keeps."""


@dataclass(frozen=True)
class Coverage:
    """How often 95 % intervals held the truth; shares."""

    normal: float
    """With normal quantiles around the same fit."""
    t: float
    """As shown."""
    fitted: float
    """Runs for which there is a fit."""


def holes(variants: int, blocks: int, missing: int, weather: float, draws: int, seed: int) -> Coverage:
    """Fit runs without effects in which so many boots, at random, are missing; `weather` is the sd that blocks have in
    common, in units of the noise."""
    random = np.random.default_rng(seed)
    held: list[tuple[bool, bool]] = []
    fits = 0
    for _ in range(draws):
        there = _there(random, variants, blocks, missing)
        logs = NOISE * (random.normal(0, weather, (1, blocks)) + random.normal(0, 1, (variants, blocks)))
        groups = {
            f"v{row}": ReplicateSample(np.exp(own[kept]), np.flatnonzero(kept))
            for row, (own, kept) in enumerate(zip(logs, there, strict=True))
        }
        table = fit_mixed(Observations("test", "ns", "lower", "", groups), "v0", 1 - CONFIDENCE)
        fits += bool(table.effects)
        df = int(there.sum()) - int(there.any(axis=0).sum()) - variants + 1
        narrower = float(scipy.stats.norm.ppf((1 + CONFIDENCE) / 2) / scipy.stats.t.ppf((1 + CONFIDENCE) / 2, df))
        for effect in table.effects:
            distance, reach = abs(math.log(effect.ratio)), math.log(effect.high / effect.low) / 2
            held.append((distance <= narrower * reach, distance <= reach))
    normal, t = np.mean(held, axis=0)
    return Coverage(float(normal), float(t), fits / draws)


def _there(
    random: np.random.Generator, variants: int, blocks: int, missing: int
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Which boots are there."""
    while True:
        there = np.ones(variants * blocks, dtype=bool)
        there[random.choice(len(there), missing, replace=False)] = False
        table = there.reshape(variants, blocks)
        if table.sum(axis=1).min() >= FEWEST:
            return table
