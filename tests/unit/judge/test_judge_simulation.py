"""The judge against known truths. tools/simulate draws more of the same and prints the table of docs/statistics.md."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from kdyno.judge.stats import bootstrap
from kdyno.judge.stats.sequential import TooManyLooks, nominal_levels, spent_alpha
from tests.judge_simulation import boots, replication
from tests.judge_simulation.holes import holes
from tests.judge_simulation.plans import PILOTS, READINGS, Pilot, Readings, plans, widths
from tests.judge_simulation.simulation import NOISES, Noise, coverage, family_errors, layout_false_positives
from tests.judge_simulation.skewed import skewed

DRAWS = 20_000


@pytest.mark.parametrize("noise", NOISES)
def test_95_percent_intervals_cover_the_truth_in_94_to_96_of_a_hundred_runs(noise: Noise) -> None:
    rates = coverage(noise, blocks=12, draws=DRAWS, seed=1, bootstraps=400)
    tolerance = 3 * math.sqrt(0.95 * 0.05 / DRAWS)
    assert 0.94 - tolerance <= rates.t <= 0.96 + tolerance
    assert rates.studentized >= 0.91
    assert rates.percentile < rates.t


def test_the_percentile_bootstrap_of_six_blocks_covers_too_little_and_the_studentized_enough() -> None:
    rates = coverage("normal", blocks=6, draws=600, seed=2, bootstraps=600)
    assert rates.percentile < 0.90
    assert rates.studentized > 0.925


def test_layouts_that_differ_in_link_order_only_are_told_apart_by_boots_but_not_by_layouts() -> None:
    by_layouts, by_boots = layout_false_positives(layouts=6, boots=3, spread=1.0, draws=3000, seed=3)
    assert by_layouts <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 3000)
    assert by_boots > 0.15


def test_looking_four_times_costs_nothing_and_peeking_does() -> None:
    tolerance = 3 * math.sqrt(0.05 * 0.95 / DRAWS)
    for blocks, benchmarks in ((8, 34), (12, 34), (12, 1)):
        assert family_errors(4, blocks, benchmarks, DRAWS, seed=4) <= 0.05 + tolerance
    assert family_errors(4, 12, 1, DRAWS, seed=4, peek=True) > 0.10


def test_the_levels_of_all_looks_add_up_to_alpha_and_the_last_has_most() -> None:
    for looks in range(1, 9):
        levels = nominal_levels(0.05, looks)
        assert len(levels) == looks
        assert sum(levels) == pytest.approx(0.05)
        assert list(levels) == sorted(levels)
    assert nominal_levels(0.05, 1) == (0.05,)
    # O'Brien and Fleming's first bound of two looks, 2.963, as it is tabulated everywhere
    assert stats.norm.isf(nominal_levels(0.05, 2)[0] / 2) == pytest.approx(2.963, abs=1e-3)
    assert spent_alpha(0.5, 0.05) == pytest.approx(0.00305, abs=1e-5)


@pytest.mark.parametrize("looks", [0, 9])
def test_more_looks_than_are_worth_it_are_refused(looks: int) -> None:
    with pytest.raises(TooManyLooks, match=f"{looks} looks"):
        nominal_levels(0.05, looks)


def test_the_bootstrap_is_hierarchical_where_layouts_are_known() -> None:
    random = np.random.default_rng(5)
    layouts = np.repeat(np.arange(8), 4)
    run = random.normal(0, 0.02, 8)[layouts] + random.normal(0, 0.002, 32)
    wide, narrow = bootstrap.difference_interval(run, layouts, 0.95), bootstrap.difference_interval(run, None, 0.95)
    assert wide
    assert narrow
    assert wide[1] - wide[0] > 1.6 * (narrow[1] - narrow[0])
    assert bootstrap.difference_interval(run, layouts, 0.95) == wide


def test_the_bootstrap_keeps_silent_where_it_has_nothing_to_say() -> None:
    random = np.random.default_rng(6)
    assert bootstrap.difference_interval(random.normal(0, 1, 4), None, 0.95) is None
    assert bootstrap.difference_interval(random.normal(0, 1, 12), None, 0.9999) is None
    assert bootstrap.group_interval(random.normal(0, 1, 2000), random.normal(0, 1, 2000), 0.95) is None
    two = bootstrap.group_interval(random.normal(1, 1, 30), random.normal(0, 1, 20), 0.95)
    assert two
    assert two[0] < 1 < two[1]


def test_geometric_means_of_boots_that_have_a_speed_of_their_own_are_seldom_called_different() -> None:
    before, now = boots.apart(5, 12, speed=0.02, noise=0.01, draws=2000, judged=150, seed=7)
    assert before.false_verdicts > 0.4
    assert before.covered < 0.6
    assert now.false_verdicts <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)
    assert now.covered >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 150)


@pytest.mark.parametrize(("comparisons", "runs"), [(1, 400), (34, 24), (238, 8)])
def test_the_effect_that_is_printed_gets_a_verdict_in_four_of_five_runs(comparisons: int, runs: int) -> None:
    rates = replication.replication_rates(comparisons, 12, draws=5000, runs=runs, seed=8)
    assert rates.now == pytest.approx(0.8, abs=0.05)
    assert comparisons == 1 or rates.before < 0.3


def test_the_rule_that_this_simulation_has_is_that_of_the_judge() -> None:
    random = np.random.default_rng(9)
    runs = random.normal(0, 0.01, (40, 12)) + np.linspace(0, 0.04, 40)[:, None]
    for run in runs:
        # one effect, if any, among 34 comparisons; the others are far from any verdict
        others = 0.01 * np.tile([1.0, -1.0], (33, 6))
        verdict = replication.judged(np.vstack([run, others]))[0].verdict
        assert (verdict in ("faster", "slower")) == bool(replication.called_different(run[None, :], 34)[0])


def test_what_all_seeds_alike_do_not_exclude_is_in_truth_seldom_larger() -> None:
    rates = replication.unseen(0.1, 12, DRAWS, seed=10)
    assert rates.alike == pytest.approx(0.9**12, abs=0.01)
    assert rates.bound == pytest.approx(1 - 0.05 ** (1 / 12))
    assert rates.beyond == 0
    assert 0.03 < replication.unseen(rates.bound + 0.001, 12, DRAWS, seed=10).beyond <= 0.055


def test_skew_in_one_variant_makes_intervals_too_narrow_and_in_both_too_wide() -> None:
    for n, noticed in ((6, 0.0), (12, 0.2), (24, 0.5)):
        for rates in skewed(("lognormal 1", "normal"), n, DRAWS, 200, seed=11):
            assert 0.82 <= rates.covered <= 0.895
            assert rates.warned >= noticed - 0.08
        for rates in skewed(("lognormal 1", "lognormal 1"), n, DRAWS, 1, seed=12):
            assert rates.covered > 0.955


def test_normal_noise_is_called_skewed_in_one_run_of_a_hundred_at_most() -> None:
    for n in (6, 12, 24):
        for rates in skewed(("normal", "normal"), n, 1000, 400, seed=13):
            assert rates.warned <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / 400)


@pytest.mark.parametrize("pilot", PILOTS)
def test_one_plan_in_ten_has_too_little_power_where_plans_on_the_estimate_are_four(pilot: Pilot) -> None:
    rates = plans(pilot, 1, "quiet", 0.01, draws=400, seed=14)
    assert rates.too_little_before > 0.3
    assert rates.too_little <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 400)
    assert 1.5 < rates.now < 2.6


@pytest.mark.parametrize("readings", READINGS)
def test_a_run_is_as_wide_as_planned_whatever_one_iteration_in_ten_does(readings: Readings) -> None:
    rates = widths(readings, 0.01, draws=300, seed=17)
    assert rates.blocks <= 14
    assert rates.kept >= 0.85 - 3 * math.sqrt(0.85 * 0.15 / 300)
    assert rates.measured > rates.planned / 2


def test_a_noisy_benchmark_among_34_is_planned_for_as_one_alone_is() -> None:
    rates = plans("6 blocks", 34, "quiet", 0.01, draws=400, seed=15)
    assert rates.too_little_before > 0.3
    assert rates.too_little <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 400)


@pytest.mark.parametrize("weather", [0.0, 3.0])
@pytest.mark.parametrize(("variants", "blocks", "missing"), [(2, 6, 1), (2, 12, 3), (4, 6, 3), (8, 6, 5)])
def test_intervals_of_the_mixed_model_hold_the_truth_and_there_is_always_a_fit(
    variants: int, blocks: int, missing: int, weather: float
) -> None:
    rates = holes(variants, blocks, missing, weather, draws=240 // (variants - 1), seed=16)
    assert rates.fitted == 1
    assert rates.t >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 240) - 0.01
    if variants == 2:
        assert rates.normal < rates.t
