"""The parts of a search in a space of recipes: points, effects, samplers, steps, gains, importance, images."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pytest

from kdyno.base.measurement import Benchmark
from kdyno.kernel.hardening import table as protecting_options
from kdyno.runs.experiment.space import RungSpec, SearchConfig
from kdyno.tune.space.bench import oldest_beyond
from kdyno.tune.space.effects import Effects
from kdyno.tune.space.gains import NoGain, speed_gain
from kdyno.tune.space.importance import knob_importance
from kdyno.tune.space.listed import UnlistedKnob, parameters, risk_of, symbols
from kdyno.tune.space.outcome import Measured, Stage, TrialOutcome
from kdyno.tune.space.samplers import (
    PROPOSERS,
    SearchView,
    blamed_parts,
    propose_at_random,
    propose_by_effects,
    propose_one_at_a_time,
    works_probability,
)
from kdyno.tune.space.search import SearchCosts, SearchState, Step, pareto_front
from kdyno.tune.space.space import Point, Space, SpaceKnob

OPT = SpaceKnob("opt", ("O2", "O3", "Os"))
TINY = SpaceKnob("kconfig.SLUB_TINY", (False, True))
ORDER = SpaceKnob("layout_seed", (1, 2))
ZERO = SpaceKnob("cmdline.zero", ("", "init_on_alloc=1"))
SPACE = Space((OPT, TINY, ORDER, ZERO))
GAINS: Mapping[tuple[str, int], float] = {("opt", 1): 0.03, ("opt", 2): -0.2, ("kconfig.SLUB_TINY", 1): -0.05}
"""The true gain of each choice; others have none."""
ONE_RUNG = (RungSpec(blocks=2),)


def gain_of(point: Point, space: Space = SPACE) -> float:
    return sum(GAINS.get((knob.key, choice), 0.0) for knob, choice in zip(space.knobs, point, strict=True))


def trial(point: Point, gain: float | None = None, *, rung: int = 0, failed: Stage | None = None) -> TrialOutcome:
    measured = Measured(value=gain_of(point) if gain is None else gain, error=0.001)
    return TrialOutcome(
        values=SPACE.values(point),
        rung=rung,
        measured={} if failed else {"speed": measured},
        failed=failed,
        build_seconds=100.0 if SPACE.objects_of(point) != SPACE.baseline else 0.0,
        boot_seconds=2.0,
    )


def view(tried: Mapping[Point, TrialOutcome], remaining: float = 1.0, seed: int = 1) -> SearchView:
    candidates = [point for point in SPACE.points if point not in tried and point != SPACE.baseline]
    cost = {point: 2.0 if SPACE.objects_of(point) == SPACE.baseline else 100.0 for point in SPACE.points}
    return SearchView(SPACE, tried, candidates, cost.__getitem__, remaining, seed=seed)


def state(trials: Iterable[TrialOutcome], rungs: tuple[RungSpec, ...] = ONE_RUNG, **limits: float) -> SearchState:
    return SearchState(SPACE, SearchConfig.model_validate(limits), rungs, trials)


def test_a_knob_whose_condition_does_not_hold_is_as_in_the_baseline() -> None:
    lto = SpaceKnob("lto", ("none", "thin"), when={"opt": ("O3",)})
    space = Space((OPT, lto))
    assert space.canonical((0, 1)) == (0, 0)
    assert space.canonical((1, 1)) == (1, 1)
    assert len(space.points) == 4


def test_conditions_may_depend_on_each_other() -> None:
    first = SpaceKnob("lto", ("none", "thin"), when={"opt": ("O3",)})
    second = SpaceKnob("march", (None, "native"), when={"lto": ("thin",)})
    assert set(Space((second, first, OPT)).points) == {(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 1), (1, 1, 1)}


def test_a_space_too_large_to_be_listed_is_drawn_from() -> None:
    knobs = tuple(SpaceKnob(f"cmdline.{number}", ("", "a", "b", "c")) for number in range(12))
    space = Space(knobs, forbid=({"cmdline.0": ("a",), "cmdline.1": ("a",)},))
    assert not space.is_listed
    space.check()
    assert all(space.is_allowed(point) for point in space.points)
    assert len(space.points) > 1000


def test_a_point_is_found_by_its_values_and_not_by_those_of_another_space() -> None:
    assert SPACE.point_of({"opt": "Os", "kconfig.SLUB_TINY": True}) == (2, 1, 0, 0)
    assert SPACE.point_of({"opt": "O1"}) is None
    assert SPACE.point_of({"march": "native"}) is None


def test_recipes_that_differ_in_how_they_are_started_share_an_image_and_relinked_ones_their_objects() -> None:
    assert SPACE.image_of((1, 0, 1, 1)) == (1, 0, 1, 0)
    assert SPACE.objects_of((1, 0, 1, 1)) == (1, 0, 0, 0)


def test_effects_are_those_that_made_the_gains() -> None:
    points = [point for point in SPACE.points if sum(map(bool, point)) == 1]
    effects = Effects(points, [gain_of(point) for point in points], 0.001)
    predicted = effects.predict([(1, 1, 0, 0), (2, 0, 1, 1)])
    assert predicted.mean == pytest.approx([-0.02, -0.2], abs=0.01)
    assert predicted.deviation.max() < 0.05


def test_what_was_never_tried_has_a_wide_interval() -> None:
    effects = Effects([(1, 0, 0, 0)], [0.03], 0.001)
    known, unknown = effects.predict([(1, 0, 0, 0), (0, 1, 0, 0)]).deviation
    assert known < 0.1 * unknown


def test_what_needs_no_build_is_tried_first() -> None:
    point = propose_by_effects(view({}))
    assert SPACE.objects_of(point) == SPACE.baseline


def test_the_best_recipe_is_found_in_few_trials() -> None:
    tried: dict[Point, TrialOutcome] = {}
    for _ in range(10):
        point = propose_by_effects(view(tried, remaining=0.5))
        tried[point] = trial(point)
    assert max(map(gain_of, tried)) == pytest.approx(0.03)


def test_the_same_trials_give_the_same_proposal() -> None:
    tried = {point: trial(point) for point in SPACE.points[1:4]}
    for propose in PROPOSERS.values():
        assert propose(view(tried)) == propose(view(tried))


def test_one_knob_at_a_time_tries_each_choice_and_then_the_best_together() -> None:
    tried: dict[Point, TrialOutcome] = {}
    for _ in range(5):
        point = propose_one_at_a_time(view(tried))
        assert sum(map(bool, point)) == 1
        tried[point] = trial(point, 0.01 if point[0] == 1 or point[3] else -0.01)
    assert propose_one_at_a_time(view(tried)) == (1, 0, 0, 1)


def test_random_proposals_are_candidates() -> None:
    chosen = {propose_at_random(view({}, seed=seed)) for seed in range(20)}
    assert SPACE.baseline not in chosen
    assert len(chosen) > 5


def test_a_choice_that_never_worked_is_to_blame_and_one_that_worked_is_not() -> None:
    tried: dict[Point, TrialOutcome] = {
        (1, 1, 0, 0): trial((1, 1, 0, 0), failed="boot"),
        (1, 0, 0, 0): trial((1, 0, 0, 0)),
    }
    blamed = blamed_parts(tried)
    assert works_probability((0, 1, 0, 0), blamed) == 0.5
    assert works_probability((1, 0, 0, 1), blamed) == 1.0
    assert works_probability((2, 0, 0, 0), blamed) == 1.0


def test_a_pair_that_failed_is_to_blame_where_each_alone_works() -> None:
    tried: dict[Point, TrialOutcome] = {
        (1, 1, 0, 0): trial((1, 1, 0, 0), failed="build"),
        (1, 0, 0, 0): trial((1, 0, 0, 0)),
        (0, 1, 0, 0): trial((0, 1, 0, 0)),
    }
    assert works_probability((1, 1, 0, 1), blamed_parts(tried)) == 0.5
    assert works_probability((0, 1, 1, 0), blamed_parts(tried)) == 1.0


COSTS = SearchCosts(build=100.0, link=10.0, boots=2.0)


def test_the_best_third_of_a_rung_goes_to_the_next() -> None:
    rungs = (RungSpec(blocks=2), RungSpec(blocks=6))
    points = [(1, 0, 0, 0), (2, 0, 0, 0), (0, 0, 1, 0)]
    searching = state(map(trial, points), rungs)
    assert searching.next_step(propose_at_random, COSTS, 1) == Step((1, 0, 0, 0), 1)
    searching.add(trial((1, 0, 0, 0), 0.02, rung=1))
    following = searching.next_step(propose_at_random, COSTS, 1)
    assert following is not None and following.rung == 0


def test_a_recipe_slower_than_the_baseline_is_never_promoted() -> None:
    rungs = (RungSpec(blocks=2), RungSpec(blocks=6))
    searching = state((trial(point, -0.01) for point in SPACE.points[1:]), rungs)
    assert searching.next_step(propose_at_random, COSTS, 1) is None
    assert searching.best() is None


def test_the_best_recipe_is_that_of_the_highest_rung() -> None:
    rungs = (RungSpec(blocks=2), RungSpec(blocks=6))
    lucky, good = (1, 1, 0, 0), (1, 0, 0, 0)
    searching = state([trial(lucky, 0.5), trial(good, 0.03), trial(good, 0.02, rung=1)], rungs)
    assert searching.best() == Step(good, 1)


def test_without_builds_left_only_what_is_built_is_tried() -> None:
    searching = state([trial((1, 0, 0, 0))], builds=1)
    seen = set()
    while (step := searching.next_step(propose_at_random, COSTS, 1)) is not None:
        seen.add(SPACE.objects_of(step.point))
        searching.add(trial(step.point))
    assert seen <= {(0, 0, 0, 0), (1, 0, 0, 0)}


def test_a_budget_of_recipes_or_hours_ends_a_search() -> None:
    assert state([trial((1, 0, 0, 0))], recipes=2).next_step(propose_at_random, COSTS, 1) is None
    assert state([trial((1, 0, 0, 0))], hours=0.001).next_step(propose_at_random, COSTS, 1) is None


def test_trials_of_another_space_are_left_out() -> None:
    other = TrialOutcome(values={"march": "native"}, rung=0, measured={"speed": Measured(value=0.1)})
    assert state([other]).tried == {}


def test_a_recipe_that_a_longer_rung_refuted_is_not_the_best() -> None:
    rungs = (RungSpec(blocks=2), RungSpec(blocks=6))
    lucky, other = (1, 0, 0, 0), (0, 1, 0, 0)
    searching = state([trial(lucky, 0.5), trial(other, 0.01), trial(lucky, -0.01, rung=1)], rungs, recipes=3)
    step = searching.next_step(propose_at_random, SearchCosts(1, 1, 1), 1)
    assert step == Step(other, 1)
    assert searching.best() == Step(other, 0)
    searching.add(trial(other, -0.02, rung=1))
    assert searching.best() is None
    assert searching.next_step(propose_at_random, SearchCosts(1, 1, 1), 1) is None


def test_the_best_recipe_is_one_that_the_clock_of_the_last_rung_found_better() -> None:
    rungs = (RungSpec(blocks=2, lane="model"), RungSpec(blocks=2, lane="wall"))
    searching = state([trial((1, 0, 0, 0), 0.1), trial((0, 1, 0, 0), 0.05)], rungs)
    assert searching.best() is None
    searching.add(trial((0, 1, 0, 0), 0.01, rung=1))
    assert searching.best() == Step((0, 1, 0, 0), 1)


def test_gains_of_another_lane_do_not_mix_with_those_of_the_first_rung() -> None:
    rungs = (RungSpec(blocks=2), RungSpec(blocks=2, tests=("lookup",)))
    searching = state([trial((1, 0, 0, 0), 0.01), trial((1, 0, 0, 0), 0.4, rung=1)], rungs)
    assert searching.tried[1, 0, 0, 0].measured["speed"].value == 0.01


def test_a_recipe_that_fails_on_a_later_rung_has_failed() -> None:
    rungs = (RungSpec(blocks=2), RungSpec(blocks=6))
    searching = state([trial((1, 0, 0, 0)), trial((1, 0, 0, 0), rung=1, failed="boot")], rungs)
    assert not searching.tried[1, 0, 0, 0].is_ok


def test_costs_are_those_of_what_is_not_built() -> None:
    built = state([trial((1, 0, 0, 0))]).built()
    assert COSTS.of(SPACE, (1, 0, 0, 1), built) == 2.0
    assert COSTS.of(SPACE, (1, 0, 1, 0), built) == 12.0
    assert COSTS.of(SPACE, (2, 0, 0, 0), built) == 102.0


def test_the_pareto_front_has_what_nothing_beats() -> None:
    values: dict[Point, tuple[float, float]] = {
        (0,): (0.0, 0.0),
        (1,): (1.0, -1.0),
        (2,): (0.5, -2.0),
        (3,): (-1.0, 3.0),
    }
    assert set(pareto_front(values)) == {(0,), (1,), (3,)}


def test_the_gain_is_the_mean_of_logarithms_of_speed() -> None:
    benchmarks = [
        Benchmark(name="latency", test="latency", description="", unit="ns", direction="lower"),
        Benchmark(name="bandwidth", test="bandwidth", description="", unit="B/s", direction="higher"),
    ]
    values = {
        ("old", "latency"): {0: 2.0, 1: 2.0},
        ("new", "latency"): {0: 1.0, 1: 1.0},
        ("old", "bandwidth"): {0: 1.0, 1: 1.0},
        ("new", "bandwidth"): {0: 1.0, 1: 1.0},
    }
    assert speed_gain(values, benchmarks, "old", "new").value == pytest.approx(math.log(2) / 2)
    with pytest.raises(NoGain):
        speed_gain({key: value for key, value in values.items() if key != ("new", "latency")}, benchmarks, "old", "new")


def test_the_knob_that_matters_is_named_and_a_choice_of_the_best_recipe_has_its_loss() -> None:
    measured = {point: trial(point) for point in SPACE.points[1::2]}
    best = max(measured, key=gain_of)
    rows = {row.key: row for row in knob_importance(SPACE, measured, best, "speed", 1)}
    assert max(rows.values(), key=lambda row: row.share).key == "opt"
    assert rows["opt"].low > 0.7
    assert rows["cmdline.zero"].high < 0.1
    assert rows["opt"].loss == pytest.approx(0.03, abs=0.01)


def test_too_few_recipes_say_nothing_about_knobs() -> None:
    assert knob_importance(SPACE, {(1, 0, 0, 0): trial((1, 0, 0, 0))}, (1, 0, 0, 0), "speed", 1) == ()


def test_the_oldest_images_go_first_and_those_of_the_baseline_stay() -> None:
    sizes = {"a": 5, "b": 5, "c": 5}
    assert oldest_beyond(sizes, (), 20) == []
    assert oldest_beyond(sizes, (), 10) == ["a"]
    assert oldest_beyond(sizes, ("a",), 6) == ["b", "c"]


def test_each_listed_knob_says_what_it_does_and_who_says_so() -> None:
    for row in [*symbols().values(), *parameters().values()]:
        assert row.what and row.says
        assert row.risk != "none" or not row.at


def test_options_that_protect_a_kernel_are_listed_with_their_risk() -> None:
    assert protecting_options().keys() <= symbols().keys()
    assert risk_of("kconfig", "HARDENED_USERCOPY", "n", "") == "hardening"
    assert risk_of("kconfig", "HARDENED_USERCOPY", "y", "") == "none"
    assert risk_of("kconfig", "MITIGATION_RETPOLINE", "n", "") == "mitigation"
    assert risk_of("cmdline", "any", "skew_tick=1 mitigations=off", "") == "mitigation"
    assert risk_of("cflags", "any", "-O3 -fno-stack-protector", "") == "hardening"
    with pytest.raises(UnlistedKnob):
        risk_of("sysctl", "kernel.randomize_va_space", "0", "sysctl.kernel.randomize_va_space")


def test_draws_have_the_predicted_mean_and_deviation() -> None:
    points = list(SPACE.points[1:6])
    effects = Effects(points, [gain_of(point) for point in points], 0.01)
    wanted = list(SPACE.points[6:9])
    draws = effects.draws(wanted, 4000, np.random.default_rng(1))
    predicted = effects.predict(wanted)
    assert draws.mean(axis=0) == pytest.approx(predicted.mean, abs=0.01)
    assert draws.std(axis=0) == pytest.approx(predicted.deviation, rel=0.1)
