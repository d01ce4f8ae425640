"""Self-tests: how often the judge is wrong is counted right, and told with its uncertainty."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from kdyno.judge.stats.observations import Observations, ReplicateSample
from kdyno.kernel.recipe import Recipe
from kdyno.measure.workload.lmbench import LmbenchWorkload
from kdyno.runs.experiment.models import Experiment, JudgeConfig
from kdyno.runs.experiment.plan import plan_boots, recipes
from kdyno.understand.selftest.carry_out import (
    MOST_PAIRS,
    SelfTestRequest,
    aa_experiment,
    layouts_experiment,
    request_of,
)
from kdyno.understand.selftest.judge import Design, judge_all, rate

NAMES = ("A", "B")
DESIGN = Design("aa", experiments=200, blocks=4, planned=12, margin=0.001, alpha=0.05, correction="holm")
PAIRS = replace(DESIGN, kind="layouts", experiments=40, margin=0.01)
OF = Experiment(
    name="mine",
    source="linux",
    baseline="plain",
    variants={"plain": Recipe(opt="O2"), "fast": Recipe(opt="O3")},
    workload=LmbenchWorkload(tests=("lat_pipe",)),
    layouts=6,
    judge=JudgeConfig(margin=0.02, looks=3),
)


def observed(name: str, spread: float, seed: int, shift: float = 0.0, shifted: int = 0) -> Observations:
    """Noise around 100 in 800 blocks; B is shifted in the first `shifted` experiments."""
    blocks = np.arange(DESIGN.experiments * DESIGN.blocks)
    noise = np.random.default_rng(seed)
    shifts = np.where(blocks < shifted * DESIGN.blocks, shift, 0.0)
    groups = {
        "A": ReplicateSample(100 * np.exp(noise.normal(0, spread, len(blocks))), blocks),
        "B": ReplicateSample(100 * np.exp(noise.normal(0, spread, len(blocks)) + shifts), blocks),
    }
    return Observations(name, "instr", "lower", name, groups)


def links(name: str, spread: float, seed: int, shifts: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Observations:
    """Noise of boots around 100; block i has pair i mod 40 of links, B's by so much slower (on the log scale)."""
    blocks = np.arange(PAIRS.experiments * PAIRS.blocks)
    noise = np.random.default_rng(seed)
    groups = {
        "A": ReplicateSample(100 * np.exp(noise.normal(0, spread, len(blocks))), blocks),
        "B": ReplicateSample(
            100 * np.exp(noise.normal(0, spread, len(blocks)) + shifts[blocks % PAIRS.experiments]), blocks
        ),
    }
    return Observations(name, "cycles", "lower", name, groups)


def test_a_rate_has_the_exact_interval_of_clopper_and_pearson() -> None:
    interval = rate(0, 200)
    assert (interval.rate, interval.low) == (0, 0)
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / 200))
    assert rate(10, 200).text == "10 of 200 (5.0 %, 95 % interval 2.4 to 9.0)"


def test_noise_alone_gives_false_verdicts_in_at_most_five_percent_of_experiments() -> None:
    family_wise, tested = judge_all([observed(f"b{seed}", 0.01, seed) for seed in range(4)], NAMES, DESIGN)
    assert family_wise.of == 200
    assert family_wise.low <= 0.05
    for comparison in tested:
        assert comparison.false_positives.low <= 0.05 <= comparison.false_positives.high, comparison.benchmark
        assert comparison.covered.low <= 0.95 <= comparison.covered.high, comparison.benchmark
        assert comparison.spread == pytest.approx(0.01 * 2**0.5, rel=0.1)
        assert comparison.detectable == pytest.approx(
            0.0175, rel=0.1
        )  # sd 1.41 %, one of 4: about 4.25 standard errors


def test_experiments_in_which_something_differs_are_counted_one_by_one() -> None:
    family_wise, (quiet, loud) = judge_all(
        [observed("quiet", 1e-5, 1), observed("loud", 1e-5, 2, shift=0.05, shifted=17)], NAMES, DESIGN
    )
    assert family_wise.count == loud.false_verdicts.count == 17
    assert quiet.false_verdicts.count == 0


def test_values_that_agree_exactly_are_never_a_false_positive() -> None:
    blocks = np.arange(800)
    same = ReplicateSample(np.full(800, 42.0), blocks)
    family_wise, (only,) = judge_all([Observations("x", "instr", "lower", "x", {"A": same, "B": same})], NAMES, DESIGN)
    assert family_wise.count == only.false_positives.count == 0
    assert (only.spread, only.detectable) == (0, None)


def test_an_aa_experiment_is_the_baseline_twice_with_a_seed_for_each_boot() -> None:
    made = aa_experiment(OF, SelfTestRequest("aa", 200, 4))
    assert made.variants == {"A": Recipe(opt="O2"), "B": Recipe(opt="O2")}
    assert (made.name, made.baseline, made.blocks, made.seeds, made.layouts) == ("mine-aa", "A", 800, "own", 0)
    assert (made.judge.margin, made.judge.looks, made.workload) == (0.02, 1, OF.workload)
    assert aa_experiment(OF, SelfTestRequest("aa", 200, 4, ("lat_sig",))).workload == LmbenchWorkload(
        tests=("lat_sig",)
    )


def test_the_blocks_of_a_pair_of_links_are_judged_together_and_never_with_those_of_another() -> None:
    shifts = np.zeros(40)
    shifts[:13] = np.log(1.05)
    family_wise, (quiet, moved) = judge_all(
        [links("quiet", 1e-5, 1, np.zeros(40)), links("moved", 1e-5, 2, shifts)], NAMES, PAIRS
    )
    assert (family_wise.count, family_wise.of) == (13, 40)
    assert (quiet.false_verdicts.count, moved.false_verdicts.count) == (0, 13)
    assert quiet.link_order and moved.link_order
    assert quiet.link_order.spread < 1e-5 and quiet.link_order.largest < 1e-4
    assert moved.link_order.spread == pytest.approx(np.log(1.05) * np.sqrt(13 * 27 / (40 * 39)), rel=1e-3)
    assert moved.link_order.largest == pytest.approx(0.05, rel=1e-3)


def test_links_that_differ_are_called_different_by_their_boots_and_not_by_layouts() -> None:
    shifts = np.random.default_rng(11).normal(0, 0.03, 40)
    benchmark = links("lat_ctx", 0.005, 6, shifts)
    family_wise, (tested,) = judge_all([benchmark], NAMES, PAIRS)
    first, second = (benchmark.groups[name] for name in NAMES)
    assert isinstance(first, ReplicateSample) and isinstance(second, ReplicateSample)
    pairs = np.log(second.values / first.values).reshape(4, 40).T  # a row for each pair
    p = stats.ttest_1samp(pairs, 0, axis=1).pvalue
    half = stats.t(3).ppf(0.975) * stats.sem(pairs, axis=1)
    equal = np.abs(pairs.mean(axis=1)) + half <= np.log1p(PAIRS.margin)
    assert family_wise.count == tested.false_verdicts.count == np.sum((p < 0.05) & ~equal) == 30
    assert tested.covered.count == np.sum(p >= 0.05) == 10
    assert tested.link_order is not None
    assert tested.link_order.spread == pytest.approx(np.std(pairs.mean(axis=1), ddof=1))
    assert stats.ttest_1samp(pairs.mean(axis=1), 0).pvalue > 0.05
    assert tested.link_order.verdict == "undecided"


def test_the_pairs_of_a_self_test_with_layouts_share_no_link_and_meet_in_every_block_of_theirs() -> None:
    made = layouts_experiment(OF, SelfTestRequest("layouts", MOST_PAIRS, 4))
    seeds = {name: [recipe.layout_seed for recipe in recipes(made, name)] for name in NAMES}
    assert len({*seeds["A"], *seeds["B"]}) == 2 * MOST_PAIRS
    assert seeds["A"] == list(range(1, MOST_PAIRS + 1))  # as in the experiment's own run with layouts
    boots = plan_boots(made)
    assert Counter((boot.variant, boot.layout_index) for boot in boots) == {
        (name, pair): 4 for name in NAMES for pair in range(MOST_PAIRS)
    }
    assert {(boot.block, boot.seed, boot.layout_index) for boot in boots if boot.variant == "A"} == {
        (boot.block, boot.seed, boot.layout_index) for boot in boots if boot.variant == "B"
    }
    assert {boot.variant for boot in boots[::2]} == set(NAMES)  # who comes first is drawn


def test_a_self_test_with_layouts_is_the_baseline_linked_in_two_orders() -> None:
    made = layouts_experiment(OF, SelfTestRequest("layouts", 10, 4, ("lat_sig",)))
    assert {name: recipe.opt for name, recipe in made.variants.items()} == {"A": "O2", "B": "O2"}
    assert (made.name, made.baseline, made.blocks, made.layouts) == ("mine-layouts", "A", 40, 10)
    assert (made.seeds, made.judge.looks, made.auto) == ("shared", 1, False)
    assert made.workload == LmbenchWorkload(tests=("lat_sig",))
    own = OF.model_copy(update={"variants": {"plain": Recipe(layout_seed=1)}})
    one, other = (recipes(layouts_experiment(own, SelfTestRequest("layouts", 10, 4)), name) for name in NAMES)
    assert not {recipe.layout_seed for recipe in one} & {recipe.layout_seed for recipe in other}


def test_what_the_user_leaves_out_is_taken_from_the_experiment() -> None:
    assert request_of(OF, "aa", None, None, ()) == SelfTestRequest("aa", 200, 4)
    assert request_of(OF, "aa", 20, 3, ("lat_sig",)) == SelfTestRequest("aa", 20, 3, ("lat_sig",))
    assert request_of(OF, "layouts", None, None, ()) == SelfTestRequest("layouts", 6, 12)
    assert request_of(OF, "layouts", 30, 5, ()) == SelfTestRequest("layouts", 30, 5)
    for layouts, pairs in ((0, 20), (1, 20), (2, 2)):
        sampled = OF.model_copy(update={"layouts": layouts, "blocks": 1})
        assert request_of(sampled, "layouts", None, None, ()) == SelfTestRequest("layouts", pairs, 3)


def test_links_that_differ_alike_in_all_boots_are_not_called_covered() -> None:
    """Counts that agree exactly have no interval: it is one point, which is 1 or isn't."""
    blocks = np.arange(PAIRS.experiments * PAIRS.blocks)
    values = {"A": np.full(len(blocks), 200.0), "B": np.where(blocks % PAIRS.experiments < 10, 201.0, 200.0)}
    groups = {name: ReplicateSample(of_name, blocks) for name, of_name in values.items()}
    _, (tested,) = judge_all([Observations("x", "instr", "lower", "x", groups)], NAMES, PAIRS)
    assert tested.covered.count == 30
