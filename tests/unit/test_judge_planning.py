"""Power, components of variance, and the plans made of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.stats.power import TTestIndPower, TTestPower  # type: ignore[import-untyped]

from kdyno.judge.planning import power
from kdyno.judge.planning.design import Bounds, Costs, plan
from kdyno.judge.planning.levels import Components, components


@pytest.mark.parametrize("n", [3, 12, 40])
def test_power_is_that_of_statsmodels(n: int) -> None:
    standardised = math.log1p(0.01) / 0.012
    assert power.power(0.01, n, 0.012, 0.05) == pytest.approx(TTestPower().power(standardised, n, 0.05))
    unpaired = power.power(0.01, n, 0.012, 0.05, paired=False)
    assert unpaired == pytest.approx(TTestIndPower().power(standardised, n, 0.05))


def test_the_detectable_effect_has_the_power_asked_for() -> None:
    for n in (2, 3, 12, 96):
        effect = power.detectable(n, 0.01, 0.01, aim=0.9)
        assert power.power(effect, n, 0.01, 0.01) == pytest.approx(0.9, abs=1e-6)


def test_one_replicate_fewer_than_needed_is_too_few() -> None:
    for effect in (0.001, 0.01, 0.1):
        n = power.replicates_needed(effect, 0.01, 0.05)
        assert n
        assert power.power(effect, n, 0.01, 0.05) >= 0.8
        assert n == 2 or power.power(effect, n - 1, 0.01, 0.05) < 0.8
    assert power.replicates_needed(0.0, 0.01, 0.05) is None
    assert power.replicates_needed(1e-9, 1.0, 0.05) is None
    assert power.replicates_needed(0.01, 0.0, 0.05) == 2


def test_power_far_out_is_one_and_without_an_effect_is_alpha() -> None:
    assert power.power([0.0, 1e6], 12, 1e-6, 0.05) == pytest.approx([0.05, 1.0])
    assert power.power([0.0, 0.01], 12, 0.0, 0.05).tolist() == [0.05, 1.0]


def test_a_curve_falls_with_the_replicates_and_rises_with_the_effect() -> None:
    found = power.curve("v", 12, 0.008, 0.05, 0.01)
    effects = [point.effect for point in found.detectable]
    assert effects == sorted(effects, reverse=True)
    assert [point.power for point in found.power] == sorted(point.power for point in found.power)
    assert any(point.power == pytest.approx(0.8) for point in found.power)
    assert found.blocks_needed == power.replicates_needed(0.01, 0.008, 0.05)


def nested(seed: int, layouts: int, boots: int, iterations: int, sds: tuple[float, float, float]) -> Components:
    random = np.random.default_rng(seed)
    found = components(
        [
            [layout + boot + random.normal(0, sds[2], iterations) for boot in random.normal(0, sds[1], boots)]
            for layout in random.normal(0, sds[0], layouts)
        ]
    )
    assert found
    return found


def test_components_of_variance_are_found_again_on_average() -> None:
    sds = (0.03, 0.02, 0.05)
    found = [nested(seed, 6, 3, 5, sds) for seed in range(400)]
    means = [
        np.mean([each.layout for each in found]),
        np.mean([each.boot for each in found]),
        np.mean([each.iteration for each in found]),
    ]
    assert means == pytest.approx([sd**2 for sd in sds], rel=0.15)


def test_a_component_that_comes_out_negative_is_nothing() -> None:
    found = [nested(seed, 3, 3, 3, (0.0, 0.0, 0.05)) for seed in range(20)]
    assert min(each.boot for each in found) == 0
    assert min(each.layout or 0 for each in found) == 0


def test_a_single_layout_has_no_component_and_a_single_reading_none_either() -> None:
    found = nested(1, 1, 8, 1, (0.1, 0.02, 0.0))
    assert (found.layout, found.iteration, found.boots, found.iterations) == (None, None, 8, 1)
    assert found.boot == pytest.approx(0.02**2, rel=0.8)


def test_boots_without_readings_are_left_out_and_too_few_give_nothing() -> None:
    empty = np.empty(0)
    assert components([]) is None
    assert components([[np.array([1.0, 2.0])]]) is None
    assert components([[np.array([1.0]), empty], [np.array([1.0])]]) is None
    found = components([[np.array([1.0, 1.1]), empty, np.array([1.2])]])
    assert found
    assert found.boots == 2


NOISY = Components(layout=None, boot=0.006**2, iteration=0.02**2, layouts=1, boots=8, iterations=5)


def test_a_plan_reaches_its_power_at_the_optimal_number_of_iterations() -> None:
    found = plan(NOISY, Costs(iteration=0.5, boot=5), 0.01)
    assert found.iterations == math.ceil(math.sqrt(5 / 0.5 * 0.02**2 / 0.006**2))
    assert found.enough
    assert found.power >= 0.8
    assert found.layouts == 0
    assert found.seconds == pytest.approx(found.blocks * (5 + found.iterations * 0.5))


def test_no_other_number_of_iterations_is_much_cheaper() -> None:
    costs = Costs(iteration=0.5, boot=5)
    best = plan(NOISY, costs, 0.004).seconds
    others = [plan(NOISY, costs, 0.004, bounds=Bounds(iterations=(k, k))).seconds for k in (1, 2, 5, 20, 40, 80)]
    assert best <= 1.05 * min(others)
    assert others[0] > 1.5 * best


def test_layouts_that_cost_more_and_differ_less_get_more_boots_each() -> None:
    found = NOISY.model_copy(update={"layout": 0.004**2})
    dear = plan(found, Costs(iteration=0.5, boot=5, layout=100), 0.005)
    cheap = plan(found, Costs(iteration=0.5, boot=5, layout=1), 0.005)
    assert dear.boots_per_layout > cheap.boots_per_layout >= 1
    assert dear.blocks == dear.layouts * dear.boots_per_layout
    assert dear.power >= 0.8


def test_exact_counts_need_the_fewest_boots_and_single_readings() -> None:
    exact = Components(layout=None, boot=0.0, iteration=0.0, layouts=1, boots=4, iterations=3)
    found = plan(exact, Costs(iteration=1, boot=5), 0.01)
    assert (found.iterations, found.blocks, found.enough, found.half_width) == (1, 4, True, 0)


def test_an_effect_beyond_reach_gets_the_largest_plan_and_says_that_it_is_not_enough() -> None:
    found = plan(NOISY, Costs(iteration=0.5, boot=5), 0.0001, bounds=Bounds(replicates=(4, 30)))
    assert (found.blocks, found.enough) == (30, False)
    assert found.power < 0.8
