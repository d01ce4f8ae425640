"""The search for a culprit, simulated on synthetic ranges."""

from __future__ import annotations

import numpy as np
import pytest

from kdyno.tune.bisect.choice import TrialCosts
from kdyno.tune.bisect.evidence import BisectEvidence, Check, Differences, Measure, Revert
from kdyno.tune.bisect.forecast import BisectForecast
from kdyno.tune.bisect.search import Search
from kdyno.tune.bisect.settings import SearchSettings
from tests.unit.tune.bisect_range import COSTS, STEPS, UML_COSTS, SyntheticRange, bisected, found_steps, planted

NOISY = (0.008, 0.002)
"""The noise of a boot and the luck of an image in the simulation that this search is compared with: 0.8 % and 0.2 %."""
LUCKY = (0.005, 0.015)
"""Those of the machine `uml`, where one link order moves a benchmark by as much as changes do."""
RANGES = 40


def test_in_a_noisy_lane_nine_of_ten_culprits_of_1_percent_are_found_with_at_most_12_builds() -> None:
    right = wrong = 0
    for seed in range(RANGES):
        kernels = planted(seed, 0.01, *NOISY, layouts=16)
        search = bisected(kernels, most_builds=12)
        assert search.builds <= 12
        steps = tuple(kernels.changes)
        right += found_steps(search) == [steps]
        wrong += any(steps[0] not in found for found in found_steps(search))
    assert right >= 0.9 * RANGES
    assert wrong <= 0.05 * RANGES


def test_link_orders_find_nine_of_ten_culprits_of_twice_the_luck_of_an_image_with_at_most_12_builds() -> None:
    right = wrong = 0
    for seed in range(RANGES):
        kernels = planted(seed, 0.03, *LUCKY, layouts=16)
        search = bisected(kernels, UML_COSTS, most_builds=12)
        steps = tuple(kernels.changes)
        right += found_steps(search) == [steps]
        wrong += any(steps[0] not in found for found in found_steps(search))
    assert right >= 0.9 * RANGES
    assert wrong == 0


def test_the_spread_between_link_orders_and_that_between_boots_are_distinguished() -> None:
    kernels = planted(1, 0.03, *LUCKY, layouts=16)
    search = Search(BisectEvidence(STEPS), SearchSettings(margin=0.003, layouts=16))
    for state in (STEPS, 32, 16):
        search.learn(Measure(state, 64, 16), kernels.measure(Measure(state, 64, 16)))
    luck, noise = search.luck_and_noise()
    assert luck == pytest.approx(0.015, rel=0.3)
    assert noise == pytest.approx(0.005, rel=0.1)


def test_an_effect_that_luck_hides_stops_the_search_at_its_ends_and_more_link_orders_are_advised() -> None:
    kernels = planted(2, 0.01, noise=0.005, luck=0.015, layouts=4)
    search = bisected(kernels, UML_COSTS)
    assert search.ends() == "undecided"
    assert {trial.state for trial in kernels.trials if isinstance(trial, Measure)} == {STEPS}
    orders = search.blocks_that_show(0.01)
    assert orders is not None and orders > 16
    assert search.blocks_that_show(0.0005) is None
    more = planted(2, 0.01, noise=0.005, luck=0.015, layouts=orders)
    assert bisected(more, UML_COSTS, most_blocks=orders).ends() == "worse"


@pytest.mark.parametrize(("size", "noise", "luck"), [(0.03, 0.005, 0.015), (0.03, 0.005, 0.005), (0.01, 0.0, 0.001)])
def test_the_forecast_is_right_within_a_factor_of_two_in_most_ranges(size: float, noise: float, luck: float) -> None:
    ahead, underway = [], []
    for seed in range(8):
        kernels = planted(seed, size, noise, luck, layouts=16)
        search = Search(BisectEvidence(STEPS), SearchSettings(margin=0.003, revert=False))
        forecasts = [(0.0, BisectForecast(search).seconds_left(UML_COSTS))]
        while (trial := search.next_trial(UML_COSTS)) is not None:
            seconds = forecasts[-1][0] + UML_COSTS.seconds(trial, search.evidence)
            search.learn(trial, kernels.measure(trial))
            forecasts.append((seconds, BisectForecast(search).seconds_left(UML_COSTS)))
        total, left_at_the_end = forecasts[-1]
        assert left_at_the_end == 0
        ahead.append(forecasts[0][1] / total)
        underway.append(next(left / (total - done) for done, left in forecasts if done >= total / 4))
    for ratios in (ahead, underway):
        assert 0.5 < float(np.median(ratios)) < 2
        assert sum(0.5 < ratio < 2 for ratio in ratios) >= 6


def test_an_effect_of_2_percent_takes_less_than_half_of_the_boots() -> None:
    boots = {}
    for size in (0.01, 0.02):
        ranges = [planted(seed, size, *NOISY) for seed in range(5)]
        for kernels in ranges:
            bisected(kernels)
        boots[size] = sum(kernels.boots for kernels in ranges)
    assert boots[0.02] < 0.5 * boots[0.01]


def test_without_noise_every_state_is_booted_once_and_halves_the_range() -> None:
    for step in (1, 2, 37, 63, 64):
        kernels = SyntheticRange(STEPS, {step: 0.01})
        search = bisected(kernels)
        assert found_steps(search) == [(step,)]
        measured = [trial for trial in kernels.trials if isinstance(trial, Measure)]
        assert len(measured) <= 8
        assert [trial.blocks for trial in measured[1:]] == [1] * (len(measured) - 1)


def test_a_range_of_one_step_is_only_checked() -> None:
    kernels = SyntheticRange(1, {1: 0.05}, noise=0.001)
    assert found_steps(bisected(kernels)) == [(1,)]
    assert kernels.trials == [Measure(1, 4), Check(0, 1, 4)]


@pytest.mark.parametrize(
    ("size", "noise", "ends"),
    [(0.0, 0.0, "equal"), (0.0, 0.0005, "equal"), (-0.01, 0.001, "reversed"), (0.006, 0.05, "undecided")],
)
def test_ends_that_are_not_worse_stop_the_search_before_another_kernel_is_built(
    size: float, noise: float, ends: str
) -> None:
    kernels = SyntheticRange(STEPS, {9: size}, noise=noise)
    search = bisected(kernels)
    assert search.ends() == ends
    assert {trial.state for trial in kernels.trials if isinstance(trial, Measure)} == {STEPS}


def test_a_bad_end_that_cannot_be_tested_stops_the_search() -> None:
    search = bisected(SyntheticRange(STEPS, {9: 0.01}, broken=frozenset({STEPS})))
    assert (search.ends(), search.builds) == ("untestable", 2)


def test_undecided_ends_get_as_many_boots_as_should_show_the_effect_up_to_the_limit() -> None:
    kernels = SyntheticRange(STEPS, {9: 0.006}, noise=0.05)
    bisected(kernels, most_blocks=16)
    assert kernels.trials == [Measure(STEPS, 4), Measure(STEPS, 16)]


def test_states_that_cannot_be_tested_are_skipped() -> None:
    kernels = SyntheticRange(STEPS, {20: 0.01}, noise=0.0005, broken=frozenset({32, 31, 33, 16, 24, 40}))
    search = bisected(kernels)
    assert found_steps(search) == [(20,)]
    assert len(set(search.evidence.untestable)) <= 6


def test_a_culprit_among_states_that_cannot_be_tested_is_a_set() -> None:
    search = bisected(SyntheticRange(STEPS, {30: 0.01}, noise=0.0005, broken=frozenset(range(28, 33))))
    [culprit] = search.culprits()
    assert culprit.steps == (28, 29, 30, 31, 32, 33)
    assert (culprit.before, culprit.after, culprit.checked) == (27, 33, "confirmed")


def test_a_state_with_the_code_of_another_is_not_booted_and_its_steps_are_not_suspected() -> None:
    same = dict.fromkeys(range(25, 49), 24)
    kernels = SyntheticRange(STEPS, {50: 0.01}, noise=0.0005, same=same)
    search = bisected_with_24(kernels)
    assert found_steps(search) == [(50,)]
    assert not set(search.evidence.measured) & set(same)
    assert search.evidence.same
    assert not search.evidence.weights()[24 : max(search.evidence.same)].any()


def bisected_with_24(kernels: SyntheticRange) -> Search:
    """A search in which state 24 is measured already: it says what the later ones equal."""
    search = Search(BisectEvidence(kernels.steps), SearchSettings(margin=0.003))
    for first in (Measure(STEPS, 4), Measure(24, 2)):
        search.learn(first, kernels.measure(first))
    while (trial := search.next_trial(TrialCosts())) is not None:
        search.learn(trial, kernels.measure(trial))
    return search


def test_bad_and_good_ends_with_the_same_code_are_equal() -> None:
    search = bisected(SyntheticRange(STEPS, {9: 0.01}, same={STEPS: 0}))
    assert (search.ends(), search.next_trial(TrialCosts())) == ("equal", None)


def test_a_culprit_with_less_than_half_of_the_effect_is_not_the_end() -> None:
    changes = {10: 0.008, 40: 0.007, 55: 0.006}
    kernels = SyntheticRange(STEPS, changes, noise=0.001, luck=0.0002)
    search = bisected(kernels)
    assert len(search.culprits()) == 2
    assert {steps[0] for steps in found_steps(search)} < set(changes)
    assert all(culprit.share is not None and culprit.share < 0.5 for culprit in search.culprits())
    assert search.explained() >= 0.5


def test_a_culprit_with_most_of_the_effect_is_the_end_although_there_is_another() -> None:
    search = bisected(SyntheticRange(STEPS, {10: 0.014, 40: 0.004}, noise=0.001, luck=0.0002))
    assert found_steps(search) == [(10,)]
    [culprit] = search.culprits()
    assert culprit.share == pytest.approx(14 / 18, abs=0.1)


@pytest.mark.parametrize("small", [0.0024, 0.006])
@pytest.mark.parametrize("culprit", [30, 150, 294])
def test_a_small_change_beside_the_culprit_costs_at_most_one_kernel(small: float, culprit: int) -> None:
    """In a lane that counts exactly even a thirtieth of the effect is seen; it doesn't matter where it came from."""
    kernels = SyntheticRange(311, {240: small, culprit: 0.0755}, noise=0.000025, luck=0.00001, layouts=16)
    search = bisected(kernels)
    assert found_steps(search) == [(culprit,)]
    assert search.builds <= 11


def test_an_improvement_within_the_range_does_not_hide_the_culprit() -> None:
    search = bisected(SyntheticRange(STEPS, {20: -0.01, 45: 0.02}, noise=0.001, luck=0.0002))
    assert found_steps(search) == [(45,)]


def test_a_lucky_image_is_not_taken_for_a_culprit() -> None:
    """State 32 is as slow as the bad end by its layout alone: other link orders don't confirm it."""
    kernels = SyntheticRange(STEPS, {50: 0.01}, noise=0.0005, lucky=dict.fromkeys(range(31, 33), 0.01), layouts=16)
    assert found_steps(bisected(kernels)) == [(50,)]


def test_a_contradicted_check_lowers_the_probability_of_its_step() -> None:
    evidence = BisectEvidence(STEPS)
    for state, effect in ((STEPS, 0.0101), (31, 0.0001), (32, 0.0102)):
        evidence.learn(Measure(state, 3), Differences((effect, effect + 1e-4, effect - 1e-4)))
    search = Search(evidence, SearchSettings(margin=0.003))
    suspect = search.suspect(search.posterior())
    assert suspect is not None and suspect.steps == (32,)
    trial = search.next_trial(TrialCosts())
    assert isinstance(trial, Check) and (trial.before, trial.after) == (31, 32)
    search.learn(trial, Differences((1e-4, -1e-4, 2e-4, -2e-4), layouts=4))
    assert search.posterior().step_probabilities()[31] < 0.5
    assert search.culprits() == []


def test_the_same_evidence_in_another_order_leads_to_the_same_trial() -> None:
    kernels = planted(3, 0.01, *NOISY)
    search = bisected(kernels)
    measured = list(search.evidence.measured.items())[:5]
    searches = []
    for order in (measured, measured[::-1]):
        evidence = BisectEvidence(STEPS)
        for state, differences in order:
            evidence.learn(Measure(state, len(differences.values)), differences)
        searches.append(Search(evidence, search.settings).next_trial(TrialCosts()))
    assert searches[0] == searches[1]


def test_the_number_of_builds_is_limited_and_the_rest_is_said_as_a_set() -> None:
    kernels = SyntheticRange(STEPS, {20: 0.01}, noise=0.0005)
    search = bisected(kernels, most_builds=5)
    assert search.builds == 5
    [culprit] = search.culprits()
    assert 20 in culprit.steps and 1 < len(culprit.steps) <= 16


def test_a_set_that_was_confirmed_is_divided_if_more_builds_are_allowed() -> None:
    kernels = SyntheticRange(STEPS, {20: 0.01}, noise=0.0005)
    limited = bisected(kernels, most_builds=5)
    settings = SearchSettings(margin=0.003, most_builds=24)
    search = Search(limited.evidence, settings)
    while (trial := search.next_trial(COSTS)) is not None:
        search.learn(trial, kernels.measure(trial))
    assert found_steps(search) == [(20,)]


def test_answers_are_better_worse_and_undecided() -> None:
    evidence = BisectEvidence(STEPS)
    blocks = np.array([-1e-4, 0.0, 1e-4])
    for state, effect in ((STEPS, 0.01), (10, 0.0), (50, 0.0101), (30, 0.005)):
        evidence.learn(Measure(state, 3), Differences(tuple(map(float, effect + blocks))))
    search = Search(evidence)
    assert [search.answer(state) for state in (10, 30, 50)] == ["better", "undecided", "worse"]


def test_images_that_exist_are_preferred() -> None:
    evidence = BisectEvidence(STEPS)
    evidence.learn(Measure(STEPS, 4), Differences((0.01, 0.0101, 0.0099, 0.01)))
    search = Search(evidence, SearchSettings(margin=0.003))
    assert search.next_trial(TrialCosts(build=300, block=20)) == Measure(32, 1, 1)
    assert search.next_trial(TrialCosts(build=300, block=20, built={25})) == Measure(25, 1, 1)


def test_each_confirmed_step_is_reverted_once_if_that_is_requested() -> None:
    kernels = SyntheticRange(STEPS, {20: 0.01}, noise=0.0005)
    search = bisected(kernels, revert=True)
    assert kernels.trials[-1] == Revert(20, 4)
    assert isinstance(search.evidence.reverts[20], Differences)
    assert [trial for trial in kernels.trials if isinstance(trial, Revert)] == [Revert(20, 4)]


def test_a_hundred_thousand_steps_are_halved_as_well() -> None:
    kernels = SyntheticRange(100_000, {71_234: 0.01}, noise=0.001, luck=0.0005)
    search = bisected(kernels)
    assert found_steps(search) == [(71_234,)]
    assert search.builds <= 21
