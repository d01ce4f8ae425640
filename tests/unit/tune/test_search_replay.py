"""Searches in the recorded space of tests/data/search, as `make bench` replays them."""

from __future__ import annotations

import bench_search
import pytest

from kdyno.tune.space.samplers import PROPOSERS


@pytest.fixture(scope="module")
def recorded() -> bench_search.RecordedSpace:
    return bench_search.recorded_space()


def test_the_recorded_space_has_two_hundred_recipes_beside_the_baseline(recorded: bench_search.RecordedSpace) -> None:
    assert len(recorded.outcomes) == len(recorded.space.points) - 1 >= 200
    assert 0.15 < recorded.best < 0.25


def test_every_recorded_speed_has_a_standard_error(recorded: bench_search.RecordedSpace) -> None:
    assert all(trial.measured["speed"].error > 0 for trial in recorded.outcomes.values() if trial.is_ok)


def test_effects_find_the_best_gain_sooner_than_one_knob_at_a_time(recorded: bench_search.RecordedSpace) -> None:
    effects, simple = (bench_search.find(recorded, PROPOSERS[name], 2) for name in ("effects", "one-at-a-time"))
    assert effects.seconds < simple.seconds
    assert effects.share_by_builds[4] > simple.share_by_builds[4]
