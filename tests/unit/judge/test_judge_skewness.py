"""Data that are too skewed for their interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from kdyno.judge.stats.compare import judge
from kdyno.judge.stats.contrast import contrast_of
from kdyno.judge.stats.observations import Observations, Summary
from kdyno.judge.stats.skewness import Skew, _z, contrast_skew, difference_skew, group_skew, sentence
from tests.unit.judge_data import apart, in_blocks, observed, sample

EVEN = np.array([-0.02, -0.015, -0.01, -0.008, -0.003, -0.001, 0.001, 0.003, 0.008, 0.01, 0.015, 0.02])
TAILED = np.append(EVEN[:-1], 0.12)


def skew(benchmark: Observations) -> Skew | None:
    contrast = contrast_of(benchmark, "v", "base")
    assert contrast is not None
    return contrast_skew(contrast)


def test_a_long_tail_of_the_differences_is_seen_and_said() -> None:
    assert difference_skew(EVEN) is None
    skewed = difference_skew(TAILED)
    assert skewed
    assert (skewed.of, skewed.n) == ("differences", 12)
    assert skewed.skewness == pytest.approx(stats.skew(TAILED, bias=False))
    assert sentence(skewed) == (
        "the differences are skewed: if one of the two has rare large values that the other one lacks, 95 % intervals "
        "cover 84 to 89 %"
    )
    comparison = judge(
        [in_blocks({"base": np.ones(12), "v": np.exp(TAILED)})], ["base", "v"], "base", margin=0.01, alpha=0.05
    )
    assert comparison.comparisons[0].caution == sentence(skewed)


@pytest.mark.parametrize("n", [8, 12, 60, 3000])
def test_the_test_is_dagostinos(n: int) -> None:
    logs = np.random.default_rng(n).gamma(2, 0.01, n)
    assert _z(logs) == pytest.approx(stats.skewtest(logs).statistic)


def test_what_blocks_share_is_not_skew() -> None:
    weather = np.append(np.zeros(11), 1.0)
    base = np.exp(weather)
    assert skew(in_blocks({"base": base, "v": np.exp(weather + EVEN)})) is None
    assert skew(in_blocks({"base": base, "v": np.exp(weather + TAILED)}))


def test_a_tail_of_one_group_is_seen_and_one_that_both_have_is_not() -> None:
    skewed = skew(apart({"base": np.exp(EVEN), "v": np.exp(TAILED)}))
    assert skewed
    assert skewed.of == "variant"
    turned = skew(apart({"base": np.exp(-TAILED), "v": np.exp(EVEN)}))
    assert turned
    assert turned.of == "baseline"
    assert turned.skewness == pytest.approx(-skewed.skewness)
    assert skew(apart({"base": np.exp(TAILED), "v": np.exp(TAILED + 0.1)})) is None
    assert "values of the variant are skewed" in sentence(skewed)


def test_skew_that_many_values_outweigh_is_not_worth_a_word() -> None:
    random = np.random.default_rng(1)
    many = random.gamma(4, 0.01, 2000)  # skewness 1: certain, but the mean of 2000 is normal
    assert stats.skewtest(many).pvalue < 1e-6
    assert difference_skew(many) is None
    assert group_skew(many, random.normal(0, 0.01, 2000)) is None


def test_layouts_are_looked_at_by_their_means() -> None:
    differences = np.repeat(EVEN, 2)
    differences[::2] += np.append(np.zeros(11), 0.3)
    differences[1::2] -= np.append(np.zeros(11), 0.3)
    layouts = np.repeat(np.arange(12), 2).tolist()
    groups = {
        "base": sample(np.ones(24), range(24), layouts),
        "v": sample(np.exp(differences), range(24), layouts),
    }
    assert skew(observed(groups)) is None


@pytest.mark.parametrize("values", [TAILED[-7:], np.zeros(12), np.full(12, 0.3), 1e-16 * TAILED])
def test_nothing_is_said_of_few_values_nor_of_such_that_agree(
    values: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> None:
    assert difference_skew(values) is None
    assert group_skew(values, values) is None


def test_nothing_is_said_of_summaries() -> None:
    assert skew(observed({"base": Summary(5, 1, 12), "v": Summary(6, 1, 12)})) is None
