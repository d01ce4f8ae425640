from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from kdyno.judge.stats import logratio
from kdyno.judge.stats.estimate import Estimate, EstimateLimits, estimate_ratio


def estimate(differences: ArrayLike, alpha: float) -> Estimate:
    values = np.asarray(differences, dtype=float)
    return estimate_ratio(
        logratio.log_ratio_of_differences(values), "paired", EstimateLimits(margin=0.01, alpha=alpha), len(values)
    )


def test_the_interval_is_the_t_interval_of_the_mean_log_ratio() -> None:
    logs = [0.01, 0.03, 0.02, 0.05]
    result = estimate(logs, alpha=0.05)
    expected = stats.ttest_1samp(logs, 0.0)
    interval = expected.confidence_interval(0.95)
    assert result.ratio == pytest.approx(math.exp(np.mean(logs)))
    assert result.low == pytest.approx(math.exp(interval.low))
    assert result.high == pytest.approx(math.exp(interval.high))
    assert result.p == pytest.approx(expected.pvalue)
    assert result.blocks == 4


@pytest.mark.parametrize("ratio", [1.0, 1.1])
def test_replicates_that_agree_exactly_have_no_interval_but_a_bound_on_what_they_missed(ratio: float) -> None:
    exact = estimate([math.log(ratio)] * 12, alpha=0.05)
    assert exact.ratio == pytest.approx(ratio)
    assert (exact.low, exact.high, exact.p, exact.detectable) == (None, None, None, None)
    assert exact.unseen == pytest.approx(0.2209, abs=1e-4)
    assert pytest.approx(0.05, abs=1e-4) == (1 - 0.2209) ** 12


def test_one_block_gives_a_ratio_and_no_interval() -> None:
    result = estimate([0.1], alpha=0.05)
    assert result.ratio == pytest.approx(math.exp(0.1))
    assert result.low is result.high is result.p is result.detectable is None


def test_two_blocks_that_disagree_wildly_stay_finite() -> None:
    result = estimate([-200.0, 200.0], alpha=0.05)
    assert result.high is not None
    assert math.isfinite(result.high)


def test_the_95_percent_interval_covers_the_truth_95_times_in_a_hundred() -> None:
    random = np.random.default_rng(1)
    covered = [
        (result.low or 0) <= math.exp(0.02) <= (result.high or 0)
        for result in (estimate(random.normal(0.02, 0.01, 8), alpha=0.05) for _ in range(2000))
    ]
    assert 0.93 <= np.mean(covered) <= 0.97
