from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from kdyno.judge import logratio
from kdyno.judge.estimate import Estimate, Limits, estimate_ratio


def estimate(differences: ArrayLike, alpha: float) -> Estimate:
    found = np.asarray(differences, dtype=float)
    return estimate_ratio(logratio.of_differences(found), "paired", Limits(margin=0.01, alpha=alpha), len(found))


def test_the_interval_is_the_t_interval_of_the_mean_log_ratio() -> None:
    logs = [0.01, 0.03, 0.02, 0.05]
    found = estimate(logs, alpha=0.05)
    expected = stats.ttest_1samp(logs, 0.0)
    interval = expected.confidence_interval(0.95)
    assert found.ratio == pytest.approx(math.exp(np.mean(logs)))
    assert found.low == pytest.approx(math.exp(interval.low))
    assert found.high == pytest.approx(math.exp(interval.high))
    assert found.p == pytest.approx(expected.pvalue)
    assert found.blocks == 4


def test_exactly_equal_counts_give_a_ratio_of_exactly_one() -> None:
    found = estimate([0.0] * 5, alpha=0.05)
    assert (found.ratio, found.low, found.high, found.p, found.detectable) == (1.0, 1.0, 1.0, 1.0, 0.0)


def test_the_same_difference_in_every_block_is_a_point_without_doubt() -> None:
    found = estimate([math.log(1.1)] * 7, alpha=0.05)
    assert found.low == found.high == found.ratio == pytest.approx(1.1)
    assert found.p == 0.0


def test_one_block_gives_a_ratio_and_no_interval() -> None:
    found = estimate([0.1], alpha=0.05)
    assert found.ratio == pytest.approx(math.exp(0.1))
    assert found.low is found.high is found.p is found.detectable is None


def test_two_blocks_that_disagree_wildly_stay_finite() -> None:
    found = estimate([-200.0, 200.0], alpha=0.05)
    assert found.high is not None
    assert math.isfinite(found.high)


def test_the_95_percent_interval_covers_the_truth_95_times_in_a_hundred() -> None:
    random = np.random.default_rng(1)
    covered = [
        (found.low or 0) <= math.exp(0.02) <= (found.high or 0)
        for found in (estimate(random.normal(0.02, 0.01, 8), alpha=0.05) for _ in range(2000))
    ]
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.parametrize("blocks", [5, 12, 30])
def test_the_detectable_effect_is_seen_in_four_of_five_runs(blocks: int) -> None:
    random = np.random.default_rng(2)
    spread = 0.01
    # what a run of this size could have seen, had its spread been known exactly
    error = spread / math.sqrt(blocks)
    effect = (stats.t.ppf(0.975, blocks - 1) + stats.t.ppf(0.8, blocks - 1)) * error
    seen = [(estimate(random.normal(effect, spread, blocks), alpha=0.05).p or 0) < 0.05 for _ in range(1500)]
    assert 0.77 <= np.mean(seen) <= 0.86
    claims = [estimate(random.normal(0, spread, blocks), alpha=0.05).detectable or 0 for _ in range(300)]
    assert np.median(claims) == pytest.approx(math.expm1(effect), rel=0.1)
