"""Observations for the tests of the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from kdyno.base.arrays import Labels
from kdyno.base.measurement import Direction
from kdyno.judge.stats.observations import Observations, ReplicateSample, Summary

STATISTICS = (
    ("12.8771", "0.0010053"),
    ("13.4675", "0.0010053"),
    ("9.6524", "0.8999947"),
    ("28.9652", "0.0010053"),
    ("24.8335", "0.0010053"),
    ("4.1317", "0.0167155"),
    ("5.5076", "0.0012818"),
    ("15.1600", "0.0010053"),
    ("9.6524", "0.0010053"),
)
"""Tukey's Q and p of three machines and all pairs of three kernels, as published."""


def observed(
    groups: Mapping[str, ReplicateSample] | Mapping[str, Summary], name: str = "b", direction: Direction = "lower"
) -> Observations:
    return Observations(benchmark=name, unit="ns", direction=direction, description=f"test {name}", groups=groups)


def sample(
    values: ArrayLike, blocks: Sequence[int] | None = None, layouts: Sequence[int] | None = None
) -> ReplicateSample:
    return ReplicateSample(values=np.asarray(values, dtype=float), blocks=_labels(blocks), clusters=_labels(layouts))


def in_blocks(groups: Mapping[str, ArrayLike], name: str = "b", direction: Direction = "lower") -> Observations:
    """Complete blocks, measured one after the other."""
    made = {}
    for place, (variant, values) in enumerate(groups.items()):
        array = np.asarray(values, dtype=float)
        blocks = np.arange(len(array))
        made[variant] = ReplicateSample(array, blocks, blocks * len(groups) + place)
    return observed(made, name, direction)


def apart(groups: Mapping[str, ArrayLike], name: str = "b", direction: Direction = "lower") -> Observations:
    """Values that don't belong together."""
    return observed({variant: sample(values) for variant, values in groups.items()}, name, direction)


def noisy(seed: int, *effects: float, blocks: int = 12, spread: float = 0.01) -> Observations:
    """Variants base, v1, v2 ... with these effects in complete blocks of normal noise."""
    random = np.random.default_rng(seed)
    weather = random.normal(0, 0.03, blocks)
    return in_blocks(
        {
            f"v{i}" if i else "base": 1000 * (1 + effect) * np.exp(weather + random.normal(0, spread, blocks))
            for i, effect in enumerate((0.0, *effects))
        }
    )


def _labels(labels: Sequence[int] | None) -> Labels | None:
    return None if labels is None else np.asarray(labels, dtype=np.int64)
