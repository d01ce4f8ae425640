"""The judge on other designs than complete blocks of boots: independent groups, summaries, layouts; and on bad data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from kdyno.base.errors import UserError
from kdyno.base.measurement import Correction
from kdyno.judge.stats.compare import Comparison, Judgement, judge
from kdyno.judge.stats.estimate import Estimate
from kdyno.judge.stats.observations import (
    BlockTwice,
    Observations,
    ReplicateSample,
    Summary,
    UnusableSample,
    UnusableSummary,
)
from tests.unit.growth import calls
from tests.unit.judge_data import apart, in_blocks, noisy, observed, sample


def judged(*benchmarks: Observations, margin: float = 0.01, correction: Correction = "holm") -> Judgement:
    names = list(dict.fromkeys(name for benchmark in benchmarks for name in benchmark.groups))
    return judge(benchmarks, names, "base", margin=margin, alpha=0.05, correction=correction)


def only(benchmark: Observations, margin: float = 0.01) -> Comparison:
    [comparison] = judged(benchmark, margin=margin).comparisons
    return comparison


def estimate(benchmark: Observations) -> Estimate:
    result = only(benchmark).estimate
    assert result is not None
    return result


def test_values_without_blocks_are_compared_after_welch() -> None:
    random = np.random.default_rng(1)
    base, v = random.lognormal(0, 0.05, 9), random.lognormal(0.1, 0.01, 20)
    result = estimate(apart({"base": base, "v": v}))
    welch = stats.ttest_ind(np.log(v), np.log(base), equal_var=False)
    interval = welch.confidence_interval(0.95)
    assert (result.method, result.blocks, result.units) == ("welch", 0, 9)
    assert result.p == pytest.approx(welch.pvalue)
    assert (result.low, result.high) == pytest.approx((np.exp(interval.low), np.exp(interval.high)))
    assert result.df == pytest.approx(welch.df)


def test_a_published_summary_gives_what_its_values_give_where_the_spread_is_small() -> None:
    random = np.random.default_rng(2)
    values = {"base": random.normal(100, 2, 12), "v": random.normal(97, 1, 12)}
    summaries = {
        name: Summary(float(value.mean()), float(value.std(ddof=1)), len(value)) for name, value in values.items()
    }
    one, two = estimate(apart(values)), estimate(observed(summaries))
    assert two.ratio == pytest.approx(one.ratio, rel=1e-3)
    assert (two.low, two.high) == pytest.approx((one.low, one.high), rel=2e-3)
    assert two.bootstrap_low is None


def test_a_summary_that_varies_by_half_its_mean_gets_no_verdict() -> None:
    comparison = only(observed({"base": Summary(100, 50, 1000), "v": Summary(200, 20, 1000)}))
    assert (comparison.verdict, comparison.reason) == (
        "undecided",
        "the standard deviation is 50.0 % of the mean: a ratio needs the single values",
    )


def test_layouts_are_the_replicates_where_they_were_sampled() -> None:
    differences = np.array([0.01, 0.012, 0.03, 0.028, -0.01, -0.012])
    groups = {
        "base": sample(np.full(6, 100.0), range(6), [0, 0, 1, 1, 2, 2]),
        "v": sample(100 * np.exp(differences), range(6), [0, 0, 1, 1, 2, 2]),
    }
    result = estimate(observed(groups))
    expected = stats.ttest_1samp([0.011, 0.029, -0.011], 0.0)
    assert (result.method, result.blocks, result.units, result.df) == ("layouts", 6, 3, 2)
    assert result.p == pytest.approx(expected.pvalue)


def test_one_layout_is_undecided_however_many_boots_it_had() -> None:
    groups = {
        "base": sample(np.linspace(100, 101, 20), range(20), [0] * 20),
        "v": sample(np.linspace(110, 111, 20), range(20), [0] * 20),
    }
    comparison = only(observed(groups))
    assert (comparison.verdict, comparison.reason) == ("undecided", "one layout: no spread known")
    assert comparison.sentence.endswith("; one layout: no spread known")


def test_blocks_whose_variants_had_other_layouts_are_compared_as_groups_of_layouts() -> None:
    random = np.random.default_rng(3)
    groups = {
        "base": sample(random.lognormal(0, 0.01, 8), range(8), [0, 0, 1, 1, 2, 2, 3, 3]),
        "v": sample(random.lognormal(0, 0.01, 8), range(8), [0, 1, 2, 3, 0, 1, 2, 3]),
    }
    result = estimate(observed(groups))
    assert (result.method, result.units) == ("welch", 4)


def test_exact_layouts_are_exact() -> None:
    groups = {name: sample(np.full(6, 59017.0), range(6), [0, 1, 2] * 2) for name in ("base", "v")}
    exact = estimate(observed(groups))
    assert (exact.ratio, exact.low, exact.high, exact.p, exact.units) == (1, None, None, None, 3)


def test_equal_values_in_both_groups_are_judged_by_how_many_there_are() -> None:
    assert only(apart({"base": [5.0] * 5, "v": [5.0] * 6})).verdict == "equivalent"
    assert only(apart({"base": [5.0] * 5, "v": [6.0] * 6})).verdict == "slower"
    assert "identical in all 4 values; something" in only(apart({"base": [5.0] * 4, "v": [6.0] * 6})).sentence


def test_a_group_without_spread_beside_one_with_is_still_compared() -> None:
    result = estimate(apart({"base": [5.0] * 4, "v": [6.0, 6.1, 5.9, 6.05]}))
    assert result.df == pytest.approx(3)
    assert result.p is not None
    assert 0 < result.p < 0.01


def test_a_single_value_is_undecided() -> None:
    comparison = only(apart({"base": [5.0], "v": [6.0, 6.1]}))
    assert (comparison.verdict, comparison.reason) == ("undecided", "one value: no spread known")
    assert only(observed({"base": Summary(5, 0, 1), "v": Summary(6, 0.1, 12)})).verdict == "undecided"


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0, -1.0])
def test_a_value_that_is_not_a_positive_number_is_named_by_block_or_row(bad: float) -> None:
    with pytest.raises(UnusableSample, match=f"benchmark 'b', variant 'v', row 2: {bad:g} is not a positive"):
        judged(apart({"base": [1.0, 2.0], "v": [1.0, bad]}))
    with pytest.raises(UnusableSample, match="benchmark 'b', variant 'v', block 7"):
        judged(observed({"base": sample([1.0, 2.0], [6, 7]), "v": sample([1.0, bad], [6, 7])}))


def test_a_block_with_two_values_of_a_variant_is_an_error() -> None:
    with pytest.raises(BlockTwice, match="block 3 has several values"):
        judged(observed({"base": sample([1, 2], [3, 4]), "v": sample([1, 2, 3], [4, 3, 3])}))


@pytest.mark.parametrize("bad", [Summary(0, 1, 5), Summary(float("nan"), 1, 5), Summary(5, -1, 5), Summary(5, 1, 0)])
def test_a_summary_that_cannot_be_one_is_named(bad: Summary) -> None:
    with pytest.raises(UnusableSummary, match="variant 'v'") as caught:
        judged(observed({"base": Summary(5, 1, 5), "v": bad}))
    assert isinstance(caught.value, UserError)


def test_a_variant_without_values_says_so() -> None:
    judgement = judge([apart({"base": [1.0, 2.0]})], ["base", "v"], "base", margin=0.01, alpha=0.05)
    assert judgement.comparisons[0].reason == "no value of v"
    assert judgement.geometric_means[0].estimate is None


def test_the_geometric_mean_of_values_that_belong_to_nothing_is_a_number_without_a_verdict() -> None:
    random = np.random.default_rng(4)
    benchmarks = [
        apart({"base": random.lognormal(0, 0.02, 12), "v": random.lognormal(0.05, 0.02, 12)}, f"b{i}") for i in range(4)
    ]
    [mean] = judged(*benchmarks).geometric_means
    assert mean.estimate
    assert mean.estimate.ratio == pytest.approx(np.exp(-0.05), abs=0.01)
    assert (mean.estimate.low, mean.estimate.p, mean.verdict) == (None, None, None)
    assert mean.reason.startswith("it is unknown which values of different benchmarks are of one boot")
    assert judged(benchmarks[0]).geometric_means[0].verdict == "slower"  # of a single one nothing need be said


def test_blocks_in_any_order_make_the_same_geometric_mean() -> None:
    one, two = noisy(5, 0.02), noisy(6, 0.01)
    backwards = observed(
        {
            name: ReplicateSample(group.values[::-1], group.blocks[::-1])
            for name, group in two.groups.items()
            if isinstance(group, ReplicateSample) and group.blocks is not None
        }
    )
    straight, turned = (judged(one, observation).geometric_means[0].estimate for observation in (two, backwards))
    assert straight
    assert turned
    assert turned.low == pytest.approx(straight.low)
    assert turned.ratio == pytest.approx(straight.ratio)


def test_benjamini_hochberg_is_milder_than_holm_on_many_real_effects() -> None:
    benchmarks = [noisy(seed, 0.012, blocks=6) for seed in range(12)]
    holm, bh = (judged(*benchmarks, correction=name) for name in ("holm", "bh"))
    ps = [
        float(comparison.estimate.p)
        for comparison in bh.comparisons
        if comparison.estimate and comparison.estimate.p is not None
    ]
    assert [comparison.p_adjusted for comparison in bh.comparisons] == pytest.approx(
        stats.false_discovery_control(np.array(ps))
    )
    pairs = list(zip(holm.comparisons, bh.comparisons, strict=True))
    assert all((one.p_adjusted or 0) >= (two.p_adjusted or 0) for one, two in pairs)
    assert any((one.p_adjusted or 0) > 1.5 * (two.p_adjusted or 0) for one, two in pairs)


def test_a_look_at_a_stricter_level_has_a_wider_interval_and_says_how_wide() -> None:
    judgement = judge([noisy(7, 0.02)], ["base", "v1"], "base", margin=0.01, alpha=0.003, confidence=0.997)
    estimate = judgement.comparisons[0].estimate
    assert estimate
    assert estimate.confidence == 0.997
    assert "99.7 % interval" in judgement.comparisons[0].sentence
    usual = judge([noisy(7, 0.02)], ["base", "v1"], "base", margin=0.01, alpha=0.05).comparisons[0].estimate
    assert usual
    assert estimate.high
    assert usual.high
    assert estimate.high > usual.high


def test_values_at_the_ends_of_what_a_double_holds_stay_finite() -> None:
    comparison = only(in_blocks({"base": [1e-300, 1e300, 1e-300], "v": [1e300, 1e-300, 1e-300]}))
    assert comparison.verdict == "undecided"
    assert comparison.model_dump_json()


def test_a_million_values_are_judged_by_arrays_and_not_one_by_one() -> None:
    random = np.random.default_rng(8)

    def judging(size: int) -> int:
        values = apart({"base": random.lognormal(0, 0.1, size), "v": random.lognormal(0.05, 0.1, size)})
        verdicts: list[str | None] = []
        work = calls(lambda: verdicts.append(only(values).verdict))
        assert verdicts == ["slower"]
        return work

    judging(5000)  # imports what the judge needs
    assert judging(500_000) <= 2 * judging(5000)
