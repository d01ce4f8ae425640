"""Power, components of variance, and the plans made of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestIndPower, TTestPower  # type: ignore[import-untyped]

from kdyno.base.arrays import Values
from kdyno.judge.stats.detectable import chances, detectable
from kdyno.judge.stats.estimate import EstimateLimits
from kdyno.judge.stats.planning import bound, power
from kdyno.judge.stats.planning.design import Bounds, Costs, plan
from kdyno.judge.stats.planning.levels import Components, components, median_variance


@pytest.mark.parametrize("n", [3, 12, 40])
def test_power_is_that_of_statsmodels(n: int) -> None:
    standardised = math.log1p(0.01) / 0.012
    assert power.power(0.01, n, 0.012, 0.05) == pytest.approx(TTestPower().power(standardised, n, 0.05))
    unpaired = power.power(0.01, n, 0.012, 0.05, paired=False)
    assert unpaired == pytest.approx(TTestIndPower().power(standardised, n, 0.05))


def test_the_detectable_effect_has_the_power_asked_for() -> None:
    for n in (12, 24, 96):
        # a spread that is only estimated needs a larger effect than one that is known
        effect = power.detectable(n, 0.01, EstimateLimits(margin=0.0))
        assert power.power(effect, n, 0.01, 0.05) == pytest.approx(0.82, abs=0.04)
        assert power.detectable(n, 0.01, EstimateLimits(margin=0.0), family=34) > effect
        assert power.detectable(n, 0.0, EstimateLimits(margin=0.0)) == 0


@pytest.mark.parametrize("df", [2.5, 11.0, 300.0])
@pytest.mark.parametrize("family", [1, 814])
@pytest.mark.parametrize("rounding", [0.0, 0.004])
def test_the_detectable_effect_is_found_with_the_probability_that_it_is_for(
    df: float, family: int, rounding: float
) -> None:
    limits = EstimateLimits(margin=0.01)
    for aim in (0.5, 0.8, 0.95):
        effect = detectable(0.002, df, limits, family=family, rounding=rounding, aim=aim)
        if rounding == 0:
            assert chances([effect], 0.002, df, limits, family=family) == pytest.approx([aim], abs=1e-7)
        else:
            assert effect > detectable(0.002, df, limits, family=family, aim=aim)


def test_one_replicate_fewer_than_needed_is_too_few() -> None:
    for effect in (0.001, 0.01, 0.1):
        n = power.find_replicates(effect, 0.01, 0.05)
        assert n
        assert power.power(effect, n, 0.01, 0.05) >= 0.8
        assert n == 2 or power.power(effect, n - 1, 0.01, 0.05) < 0.8
    assert power.find_replicates(0.0, 0.01, 0.05) is None
    assert power.find_replicates(1e-9, 1.0, 0.05) is None
    assert power.find_replicates(0.01, 0.0, 0.05) == 2


def test_power_far_out_is_one_and_without_an_effect_is_alpha() -> None:
    assert power.power([0.0, 1e6], 12, 1e-6, 0.05) == pytest.approx([0.05, 1.0])
    assert power.power([0.0, 0.01], 12, 0.0, 0.05).tolist() == [0.05, 1.0]


def test_a_curve_falls_with_the_replicates_and_rises_with_the_effect() -> None:
    result = power.curve("v", 12, 0.008, EstimateLimits(margin=0.0))
    effects = [point.effect for point in result.detectable]
    assert effects == sorted(effects, reverse=True)
    assert [point.power for point in result.power] == sorted(point.power for point in result.power)
    assert any(point.power == pytest.approx(0.8) for point in result.power)
    assert result.blocks_needed is None
    assert power.curve("v", 12, 0.008, EstimateLimits(margin=0.01)).blocks_needed == power.find_replicates(
        0.01, 0.008, 0.05
    )


def test_more_replicates_call_effects_inside_the_margin_equivalent() -> None:
    few, many = (power.detectable(n, 0.003, EstimateLimits(margin=0.01)) for n in (6, 1000))
    assert few < many < 0.01


def nested(seed: int, layouts: int, boots: int, iterations: int, sds: tuple[float, float, float]) -> Components:
    """Both boots of a pair have the noise of readings, the variant's all other noise."""
    random = np.random.default_rng(seed)

    def readings() -> Values:
        return random.normal(0, sds[2], iterations)

    result = components(
        [
            [(layout + boot + readings(), readings()) for boot in random.normal(0, sds[1], boots)]
            for layout in random.normal(0, sds[0], layouts)
        ]
    )
    assert result
    return result


def of_two_medians(iterations: int, sd: float) -> float:
    """True variance of the difference of two medians of normal readings, as drawn."""
    drawn = np.random.default_rng(iterations).normal(0, sd, (2, 40_000, iterations))
    return float(np.median(drawn, axis=2).var(axis=1).sum())


def test_components_of_variance_are_found_again_on_average() -> None:
    sds = (0.3, 0.2, 0.05)
    results = [nested(seed, 6, 3, 5, sds) for seed in range(400)]
    means = [
        np.mean([result.layout for result in results]),
        np.mean([result.boot for result in results]),
        np.mean([result.variance_within(5) for result in results]),
    ]
    assert means == pytest.approx([0.3**2, 0.2**2, of_two_medians(5, 0.05)], rel=0.2)


@pytest.mark.parametrize("readings", [3, 5, 7, 11, 20, 30])
def test_the_variance_of_a_median_is_that_of_medians_that_are_drawn(readings: int) -> None:
    random = np.random.default_rng(readings)
    found = np.mean(
        [median_variance(list(random.normal(0, 0.02, (6, readings))), readings) for _ in range(200)], axis=0
    )
    for count in (3, readings):
        assert found[count - 1] == pytest.approx(of_two_medians(count, 0.02) / 2, rel=0.2)


def test_a_slow_reading_in_ten_counts_where_it_would_be_the_median_of_a_boot_and_only_there() -> None:
    random = np.random.default_rng(3)
    sides = random.normal(0, 0.01, (2, 12, 11))
    even = components([list(zip(*sides, strict=True))])
    sides[:, :, 4] += 0.4
    slow = components([list(zip(*sides, strict=True))])
    assert even and slow
    assert slow.boot + slow.variance_within(11) < 1.5 * (even.boot + even.variance_within(11))
    assert slow.variance_within(1) > 20 * even.variance_within(1)
    assert slow.variance_within(22) == pytest.approx(slow.variance_within(11) / 2)


def test_a_component_that_comes_out_negative_is_nothing() -> None:
    results = [nested(seed, 3, 3, 3, (0.0, 0.0, 0.05)) for seed in range(20)]
    assert min(result.boot for result in results) == 0
    assert min(result.layout or 0 for result in results) == 0


def test_a_single_layout_has_no_component_and_a_single_reading_none_either() -> None:
    result = nested(1, 1, 8, 1, (0.1, 0.02, 0.0))
    assert (result.layout, result.medians, result.boots, result.iterations) == (None, (), 8, 1)
    assert result.boot == pytest.approx(0.02**2, rel=0.8)


def test_boots_without_readings_are_left_out_and_too_few_give_nothing() -> None:
    empty = np.empty(0)
    assert components([]) is None
    one, two = np.array([1.0]), np.array([1.0, 1.1])
    assert components([[(two, two)]]) is None
    assert components([[(one, one), (one, empty)], [(one, one)]]) is None
    result = components([[(two, one), (empty, one), (one, one)]])
    assert result
    assert result.boots == 2


NOISY = Components(
    layout=None,
    boot=0.006**2,
    medians=tuple(0.02**2 / count for count in range(1, 6)),
    layouts=1,
    boots=8,
    iterations=5,
)


def test_a_plan_reaches_its_power_at_the_number_of_iterations_whose_variance_times_cost_is_least() -> None:
    result = plan(NOISY, Costs(iteration=0.5, boot=5), 0.01)
    # 8 boots of 5 readings: a mean square of 116e-6 with 7 degrees of freedom, whose chi-square quantile of 15 % is
    # 3.358; of more readings' median some of the 80e-6 is taken away, with 8 √5, whose quantile of 85 % is 24.02
    bounds = {5: 116e-6 * 7 / 3.358}
    for count in range(6, 101):
        taken = 80e-6 * (1 - 5 / count)
        reach = math.hypot(116e-6 * (7 / 3.358 - 1), taken * (1 - 8 * math.sqrt(5) / 24.02))
        bounds[count] = 116e-6 - taken + reach
    assert result.iterations == min(bounds, key=lambda count: bounds[count] * (5 + count * 0.5))
    assert result.noise_bound == pytest.approx(math.expm1(math.sqrt(bounds[result.iterations])), rel=0.001)
    assert result.enough
    assert result.power >= 0.8
    assert result.layouts == 0
    assert result.seconds == pytest.approx(result.blocks * (5 + result.iterations * 0.5))


def test_no_other_number_of_iterations_is_much_cheaper() -> None:
    costs = Costs(iteration=0.5, boot=5)
    best = plan(NOISY, costs, 0.004).seconds
    others = [plan(NOISY, costs, 0.004, bounds=Bounds(iterations=(k, k))).seconds for k in (1, 2, 5, 20, 40, 80)]
    assert best <= 1.05 * min(others)
    assert others[0] > 1.5 * best


def test_layouts_that_cost_more_and_differ_less_get_more_boots_each() -> None:
    noisier = NOISY.model_copy(update={"layout": 0.004**2, "layouts": 8, "boots": 16})
    dear = plan(noisier, Costs(iteration=0.5, boot=5, layout=100), 0.005)
    cheap = plan(noisier, Costs(iteration=0.5, boot=5, layout=1), 0.005)
    assert dear.boots_per_layout > cheap.boots_per_layout >= 1
    assert dear.blocks == dear.layouts * dear.boots_per_layout
    assert dear.power >= 0.8


def test_exact_counts_need_the_fewest_boots_and_single_readings() -> None:
    exact = Components(layout=None, boot=0.0, medians=(0.0, 0.0, 0.0), layouts=1, boots=4, iterations=3)
    result = plan(exact, Costs(iteration=1, boot=5), 0.01)
    assert (result.iterations, result.blocks, result.enough, result.half_width) == (1, 4, True, 0)


def test_an_effect_beyond_reach_gets_the_largest_plan_and_says_that_it_is_not_enough() -> None:
    result = plan(NOISY, Costs(iteration=0.5, boot=5), 0.0001, bounds=Bounds(replicates=(4, 30)))
    assert (result.blocks, result.enough) == (30, False)
    assert result.power < 0.8


@pytest.mark.parametrize("blocks", [2, 6, 12])
def test_the_bound_of_one_level_is_that_of_the_chi_square(blocks: int) -> None:
    variances = Components(layout=None, boot=0.01**2, medians=(), layouts=1, boots=blocks, iterations=1)
    expected = 0.01**2 * (blocks - 1) / stats.chi2.ppf(1 - bound.CONFIDENCE, blocks - 1)
    assert bound.upper(variances, 1, 1) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("shape", "sds", "planned"),
    [
        ((1, 6, 5), (0.0, 0.01, 0.02), (2, 1)),
        ((1, 6, 5), (0.0, 0.01, 0.02), (20, 1)),
        ((1, 6, 11), (0.0, 0.0, 0.02), (11, 1)),
        ((1, 6, 5), (0.0, 0.003, 0.02), (5, 1)),
        ((6, 2, 1), (0.01, 0.005, 0.0), (1, 1)),
        ((6, 2, 3), (0.01, 0.02, 0.02), (3, 4)),
        ((6, 2, 3), (0.002, 0.02, 0.02), (3, 2)),
    ],
)
def test_the_noise_of_a_plan_is_below_its_bound_as_often_as_promised(
    shape: tuple[int, int, int], sds: tuple[float, float, float], planned: tuple[int, int]
) -> None:
    iterations, boots = planned
    truth = (sds[0] ** 2 if shape[0] > 1 else 0) + (sds[1] ** 2 + of_two_medians(iterations, sds[2])) / boots
    draws = 1500
    held = np.mean([bound.upper(nested(seed, *shape, sds), iterations, boots) >= truth for seed in range(draws)])
    assert held >= bound.CONFIDENCE - 3 * math.sqrt(bound.CONFIDENCE * (1 - bound.CONFIDENCE) / draws)


def test_noise_that_was_not_seen_has_no_bound() -> None:
    exact = Components(layout=0.0, boot=0.0, medians=(0.0, 0.0, 0.0), layouts=3, boots=6, iterations=3)
    assert bound.upper(exact, 10, 2) == 0
