"""Where modelled cycles go: every event has one cause, and the parts add up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdyno.measure.cycles.budget import Budget, budget, percentages
from kdyno.measure.cycles.causes import CATEGORIES, CAUSES, TITLES
from kdyno.measure.cycles.events import EVENTS, UNSEEN
from kdyno.measure.cycles.family import families, load_family
from kdyno.measure.cycles.predict import cycles, parts


def test_every_event_has_a_cause_and_every_cause_an_event() -> None:
    assert sorted(CAUSES) == sorted(EVENTS)
    assert {cause.category for cause in CAUSES.values()} == set(CATEGORIES) == set(TITLES)


def test_what_no_compiler_can_move_no_layout_can() -> None:
    assert [event for event, cause in CAUSES.items() if cause.fixed and cause.is_layout] == []
    assert all(CAUSES[event].fixed for event in UNSEEN)


@pytest.mark.parametrize("name", families())
def test_the_categories_add_up_to_the_modelled_cycles(name: str) -> None:
    family = load_family(name)
    counts = np.random.default_rng(3).integers(0, 10_000, len(EVENTS)).astype(np.uint64)
    result = budget("lat_pipe", "gcc-O2", "op", parts(counts, EVENTS, family), {})
    assert result.cycles == pytest.approx(float(cycles(counts, EVENTS, family)), rel=1e-12)
    assert sum(spent.cycles for spent in result.categories) == pytest.approx(result.cycles, rel=1e-12)
    assert sum(spent.share for spent in result.categories) == pytest.approx(1, rel=1e-12)
    for spent in result.categories:
        assert sum(spent.events.values()) == pytest.approx(spent.cycles, rel=1e-12)


def simple() -> Budget:
    added = {"instructions": 40.0, "stall_fetch": 20.0, "l1i_misses": 5.0, "privilege_switches": 10.0}
    added |= {"rep_bytes": 6.0, "rep_instructions": 4.0, "taken_branches": 3.0, "l2_misses": 2.0, "l1d_misses": 1.0}
    return budget("lat_pipe", "gcc-O2", "op", added | {"user_instructions": 9.0}, {"instructions": 7.0, "calls": 1.0})


def test_parts_go_where_they_belong() -> None:
    result = simple()
    assert result.cycles == 100
    assert result.interrupt_cycles == 8
    assert {spent.category: spent.cycles for spent in result.categories if spent.cycles} == {
        **{"user": 9, "switches": 10, "rep": 10, "fetch": 25, "instructions": 40, "data": 3, "branches": 3}
    }
    [fetch] = (spent for spent in result.categories if spent.category == "fetch")
    assert fetch.events == {"stall_fetch": 20, "l1i_misses": 5}


def test_the_bounds_leave_out_what_they_say() -> None:
    result = simple()
    assert result.fixed == 10 + 6 + 9  # switches, bytes and user code, but not the start of a rep instruction
    assert result.perfect_fetch == 75
    assert result.best_layout == 100 - 25 - 3 - 2  # also taken branches, and misses that may be code's
    assert result.share(result.fixed) == 0.25


def test_a_region_without_cycles_has_no_shares() -> None:
    result = budget("lat_pipe", "gcc-O2", "op", {}, {})
    assert (result.cycles, result.share(0.0)) == (0, 0)
    assert {spent.share for spent in result.categories} == {0}


def test_rounding_is_made_up_where_most_was_lost() -> None:
    assert percentages([1 / 3, 1 / 3, 1 / 3]) == [33.4, 33.3, 33.3]
    assert percentages([0.99949, 0.00051]) == [99.9, 0.1]


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=12).filter(lambda amounts: sum(amounts) > 1))
def test_rounded_shares_add_up_to_a_hundred(amounts: list[float]) -> None:
    shares = [amount / sum(amounts) for amount in amounts]
    rounded = percentages(shares)
    assert round(sum(rounded), 6) == 100
    assert all(abs(100 * share - percent) < 0.1 + 1e-9 for share, percent in zip(shares, rounded, strict=True))
