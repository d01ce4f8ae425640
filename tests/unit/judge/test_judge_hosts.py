"""Runs on several hosts: a block is on one host, so that what differs between hosts cancels within blocks."""

from __future__ import annotations

import math

import numpy as np

from kdyno.judge.stats.compare import judge
from kdyno.judge.stats.observations import Observations
from tests.unit.judge_data import in_blocks

RUNS, BLOCKS, HOSTS = 300, 12, 3
NOISE, BETWEEN_HOSTS = 0.005, 0.10
"""Standard deviations of logarithms: of a boot, and of a host's speed."""


def on_hosts(random: np.random.Generator, effect: float) -> Observations:
    """A run whose blocks are on hosts that differ twenty times as much as its boots."""
    speed = random.normal(0, BETWEEN_HOSTS, HOSTS)[random.integers(0, HOSTS, BLOCKS)]
    return in_blocks(
        {
            name: 1000 * np.exp(gain + speed + random.normal(0, NOISE, BLOCKS))
            for name, gain in (("base", 0.0), ("other", effect))
        }
    )


def called(effect: float, seed: int) -> float:
    """The share of runs with a verdict other than equivalent or undecided."""
    random = np.random.default_rng(seed)
    runs = (on_hosts(random, effect) for _ in range(RUNS))
    judged = (judge([run], ["base", "other"], "base", margin=0.001, alpha=0.05) for run in runs)
    return sum(judgement.comparisons[0].verdict in ("faster", "slower") for judgement in judged) / RUNS


def test_the_difference_of_hosts_neither_makes_verdicts_nor_hides_them() -> None:
    assert called(0.0, seed=1) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / RUNS)
    assert called(0.02, seed=2) > 0.98
