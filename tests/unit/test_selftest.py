"""A/A experiments: how often the judge is wrong is counted right, and told with its uncertainty."""

from __future__ import annotations

import numpy as np
import pytest

from kdyno.experiment.models import Experiment, JudgeConfig
from kdyno.judge.observations import Observations, Sample
from kdyno.kernel.recipe import Recipe
from kdyno.selftest.carry_out import aa_experiment
from kdyno.selftest.judge import Design, judge_all, rate
from kdyno.workload.lmbench import LmbenchWorkload

NAMES = ("A", "B")
DESIGN = Design(experiments=200, blocks=4, planned=12, margin=0.001, alpha=0.05, correction="holm")


def observed(name: str, spread: float, seed: int, shift: float = 0.0, shifted: int = 0) -> Observations:
    """Noise around 100 in 800 blocks; B is shifted in the first `shifted` experiments."""
    blocks = np.arange(DESIGN.experiments * DESIGN.blocks)
    noise = np.random.default_rng(seed)
    shifts = np.where(blocks < shifted * DESIGN.blocks, shift, 0.0)
    groups = {
        "A": Sample(100 * np.exp(noise.normal(0, spread, len(blocks))), blocks),
        "B": Sample(100 * np.exp(noise.normal(0, spread, len(blocks)) + shifts), blocks),
    }
    return Observations(name, "instr", "lower", name, groups)


def test_a_rate_has_the_exact_interval_of_clopper_and_pearson() -> None:
    found = rate(0, 200)
    assert (found.rate, found.low) == (0, 0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 200))
    assert rate(10, 200).text == "10 of 200 (5.0 %, 95 % interval 2.4 to 9.0)"


def test_noise_alone_gives_false_verdicts_in_at_most_five_percent_of_experiments() -> None:
    family_wise, tested = judge_all([observed(f"b{seed}", 0.01, seed) for seed in range(4)], NAMES, DESIGN)
    assert family_wise.of == 200
    assert family_wise.low <= 0.05
    for each in tested:
        assert each.false_positives.low <= 0.05 <= each.false_positives.high, each.benchmark
        assert each.covered.low <= 0.95 <= each.covered.high, each.benchmark
        assert each.spread == pytest.approx(0.01 * 2**0.5, rel=0.1)
        assert each.detectable == pytest.approx(0.0125, rel=0.15)  # 12 blocks, sd 1.41 %: about 3.1 standard errors


def test_experiments_in_which_something_differs_are_counted_one_by_one() -> None:
    family_wise, (quiet, loud) = judge_all(
        [observed("quiet", 1e-5, 1), observed("loud", 1e-5, 2, shift=0.05, shifted=17)], NAMES, DESIGN
    )
    assert family_wise.count == loud.false_verdicts.count == 17
    assert quiet.false_verdicts.count == 0


def test_values_that_agree_exactly_are_never_a_false_positive() -> None:
    blocks = np.arange(800)
    same = Sample(np.full(800, 42.0), blocks)
    family_wise, (only,) = judge_all([Observations("x", "instr", "lower", "x", {"A": same, "B": same})], NAMES, DESIGN)
    assert family_wise.count == only.false_positives.count == 0
    assert (only.spread, only.detectable) == (0, 0)


def test_an_aa_experiment_is_the_baseline_twice_with_a_seed_for_each_boot() -> None:
    of = Experiment(
        name="mine",
        source="linux",
        baseline="plain",
        variants={"plain": Recipe(opt="O2"), "fast": Recipe(opt="O3")},
        workload=LmbenchWorkload(tests=("lat_pipe",)),
        layouts=6,
        judge=JudgeConfig(margin=0.02, looks=3),
    )
    made = aa_experiment(of, 200, 4, ())
    assert made.variants == {"A": Recipe(opt="O2"), "B": Recipe(opt="O2")}
    assert (made.name, made.baseline, made.blocks, made.seeds, made.layouts) == ("mine-aa", "A", 800, "own", 0)
    assert (made.judge.margin, made.judge.looks, made.workload) == (0.02, 1, of.workload)
    assert aa_experiment(of, 200, 4, ("lat_sig",)).workload == LmbenchWorkload(tests=("lat_sig",))
