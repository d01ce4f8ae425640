"""The judge against known truths. tools/simulate draws more of the same and prints the table of docs/statistics.md."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from kdyno.judge import bootstrap
from kdyno.judge.checks.simulation import NOISES, Noise, coverage, family_errors, layout_false_positives
from kdyno.judge.sequential import TooManyLooks, nominal_levels, spent_by

DRAWS = 20_000


@pytest.mark.parametrize("noise", NOISES)
def test_95_percent_intervals_cover_the_truth_in_94_to_96_of_a_hundred_runs(noise: Noise) -> None:
    found = coverage(noise, blocks=12, draws=DRAWS, seed=1, bootstraps=400)
    tolerance = 3 * math.sqrt(0.95 * 0.05 / DRAWS)
    assert 0.94 - tolerance <= found.t <= 0.96 + tolerance
    assert found.studentized >= 0.91
    assert found.percentile < found.t


def test_the_percentile_bootstrap_of_six_blocks_covers_too_little_and_the_studentized_enough() -> None:
    found = coverage("normal", blocks=6, draws=600, seed=2, bootstraps=600)
    assert found.percentile < 0.90
    assert found.studentized > 0.925


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
    assert spent_by(0.5, 0.05) == pytest.approx(0.00305, abs=1e-5)


@pytest.mark.parametrize("looks", [0, 9])
def test_more_looks_than_are_worth_it_are_refused(looks: int) -> None:
    with pytest.raises(TooManyLooks, match=f"{looks} looks"):
        nominal_levels(0.05, looks)


def test_the_bootstrap_is_hierarchical_where_layouts_are_known() -> None:
    random = np.random.default_rng(5)
    layouts = np.repeat(np.arange(8), 4)
    run = random.normal(0, 0.02, 8)[layouts] + random.normal(0, 0.002, 32)
    wide, narrow = bootstrap.of_differences(run, layouts, 0.95), bootstrap.of_differences(run, None, 0.95)
    assert wide
    assert narrow
    assert wide[1] - wide[0] > 1.6 * (narrow[1] - narrow[0])
    assert bootstrap.of_differences(run, layouts, 0.95) == wide


def test_the_bootstrap_keeps_silent_where_it_has_nothing_to_say() -> None:
    random = np.random.default_rng(6)
    assert bootstrap.of_differences(random.normal(0, 1, 4), None, 0.95) is None
    assert bootstrap.of_differences(random.normal(0, 1, 12), None, 0.9999) is None
    assert bootstrap.of_groups(random.normal(0, 1, 2000), random.normal(0, 1, 2000), 0.95) is None
    two = bootstrap.of_groups(random.normal(1, 1, 30), random.normal(0, 1, 20), 0.95)
    assert two
    assert two[0] < 1 < two[1]
