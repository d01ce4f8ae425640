"""The fit of weights and the judgement of a model, on made-up events."""

from __future__ import annotations

import numpy as np
import pytest

from kdyno.measure.cycles.evaluate import EvaluatedProgram, Role, errors_by_kind, quality, worst
from kdyno.measure.cycles.fit import find_fixed_events, fit
from kdyno.measure.cycles.predict import parts, weigh
from tests.unit.cycles_specimen import family

NAMES = ("instructions", "stall_memory", "stall_branches", "locked", "serializing", "user_instructions")
TRUE = {"instructions": 0.25, "stall_memory": 0.8, "stall_branches": 1.3, "locked": 0.0}


def events(programs: int = 60) -> np.ndarray:
    """Counts[P, 6]; nothing is serializing, nobody locks."""
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 1000, (programs, len(NAMES)))
    counts[:, 0] += 1000
    counts[:, 3:] = 0
    return counts.astype(np.uint64)


@pytest.mark.parametrize("scale", [1, 1000])
def test_planted_weights_are_found_from_other_defaults(scale: int) -> None:
    counts = events() * np.uint64(scale)
    defaults = {"instructions": 0.2, "stall_memory": 1.0, "stall_branches": 1.0}
    weights = fit(counts, weigh(counts, NAMES, TRUE), NAMES, defaults, pull=1e-6)
    assert weights == pytest.approx({name: TRUE[name] for name in defaults}, rel=1e-2)


def test_long_and_short_programs_weigh_the_same() -> None:
    counts = events()
    counts[::2] *= np.uint64(10_000)
    native = weigh(counts, NAMES, TRUE)
    weights = fit(counts, native, NAMES, {"instructions": 0.2, "stall_memory": 1.0, "stall_branches": 1.0}, pull=1e-6)
    assert weights["stall_branches"] == pytest.approx(1.3, rel=1e-2)


def test_one_program_that_is_far_off_does_not_spoil_the_rest() -> None:
    counts = events()
    native = weigh(counts, NAMES, TRUE)
    native[0] *= 50
    weights = fit(counts, native, NAMES, {"instructions": 0.2, "stall_memory": 1.0, "stall_branches": 1.0}, pull=1e-6)
    assert weights["stall_memory"] == pytest.approx(0.8, rel=0.1)


def test_no_weight_is_negative() -> None:
    counts = events()
    native = np.maximum(weigh(counts, NAMES, {**TRUE, "stall_memory": -0.2}), 1)
    weights = fit(counts, native, NAMES, {"instructions": 0.2, "stall_memory": 1.0}, pull=1e-6)
    assert min(weights.values()) >= 0


def test_an_event_that_no_program_shows_keeps_its_weight_and_is_said_to() -> None:
    counts = events()
    defaults = {"instructions": 0.2, "stall_memory": 1.0, "locked": 18.0, "serializing": 60.0}
    weights = fit(counts, weigh(counts, NAMES, TRUE), NAMES, defaults)
    assert (weights["locked"], weights["serializing"]) == (18.0, 60.0)
    assert find_fixed_events(defaults, counts, NAMES) == ("locked", "serializing")


def test_events_without_a_default_weigh_nothing() -> None:
    counts = events()
    assert set(fit(counts, weigh(counts, NAMES, TRUE), NAMES, {"instructions": 0.2})) == {"instructions"}


def test_a_strong_pull_keeps_the_defaults() -> None:
    counts = events()
    defaults = {"instructions": 0.2, "stall_memory": 1.0}
    assert fit(counts, weigh(counts, NAMES, TRUE), NAMES, defaults, pull=1e6) == pytest.approx(defaults, rel=1e-3)


def test_predictions_have_the_shape_of_the_counts_without_the_events() -> None:
    counts = events(6).reshape(2, 3, len(NAMES))
    assert weigh(counts, NAMES, TRUE).shape == (2, 3)
    assert weigh(counts[0, 0], NAMES, TRUE).shape == ()


def test_an_event_that_was_not_counted_adds_nothing() -> None:
    assert float(weigh(np.array([100]), ("instructions",), {"instructions": 0.5, "stall_llc": 1.0})) == 50


def test_parts_of_the_cycles_add_up_and_the_largest_comes_first() -> None:
    added = parts(np.array([100, 1000]), ("slots", "stall_memory"), family())
    assert list(added) == ["stall_memory", "slots"]
    assert added["slots"] == 100 * family().weights["slots"]


def judged(native: float, modelled: float, kind: str = "a", role: Role = "held-out") -> EvaluatedProgram:
    return EvaluatedProgram(f"p{native:g}", kind, role, native, modelled, instructions=native / 3)


def test_quality_is_of_ranks_and_of_errors() -> None:
    of = quality([judged(100, 110), judged(200, 180), judged(300, 600), judged(400, 400)])
    assert of.programs == 4
    assert of.spearman == pytest.approx(0.8)
    assert of.median_error == pytest.approx(0.1)
    assert of.most_error == pytest.approx(0.73)


def test_the_worst_is_what_is_furthest_off_in_either_direction() -> None:
    named = worst([judged(100, 50), judged(200, 190), judged(300, 1200)], 2)
    assert [program.native for program in named] == [300, 100]
    assert named[0].error_factor == 4


def test_kinds_are_listed_from_the_worst_on() -> None:
    assert list(errors_by_kind([judged(1, 1.1, "good"), judged(2, 4, "bad")])) == ["bad", "good"]
