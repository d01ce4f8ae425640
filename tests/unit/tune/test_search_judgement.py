"""The judgement: which runs it takes, and what may be said after them."""

from __future__ import annotations

from kdyno.judge.stats.verdict import Verdict
from kdyno.kernel.recipe import Recipe
from kdyno.measure.workload.lmbench import LmbenchWorkload
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.plan import plan_boots, recipes
from kdyno.runs.experiment.tune import CompilerChoice
from kdyno.tune.delegation.judgement import LAYOUTS, MIXED, Against, JudgedRun, claim, experiment_of

CHOICES = {"clang": CompilerChoice(compiler="clang-19")}
HELD_OUT = LmbenchWorkload(tests=("lat_sig",))


def experiment(**more: object) -> Experiment:
    return Experiment.model_validate(
        {"name": "tune", "source": "debian:linux-source-6.12", "baseline": "gcc", "variants": {"gcc": {}}, **more}
    )


def against(variant: str, gain: float, verdict: Verdict) -> Against:
    return Against(variant=variant, gain=gain, verdict=verdict, sentence=f"{variant}: {verdict}")


def judged(workload: str, *rows: Against) -> JudgedRun:
    return JudgedRun(workload=workload, run="abc", against=rows)


def test_the_run_has_the_reference_each_choice_whole_and_the_mixed_kernel_in_link_orders_of_its_own() -> None:
    run = experiment_of(experiment(blocks=4), Recipe(march="x86-64-v3"), CHOICES, HELD_OUT, seed=99)
    assert list(run.variants) == ["gcc", "clang", MIXED]
    assert run.variants["clang"].toolchain == "clang-19"
    assert (run.layouts, run.blocks, run.workload) == (LAYOUTS, LAYOUTS, HELD_OUT)
    layouts = {name: [recipe.layout_seed for recipe in recipes(run, name)] for name in run.variants}
    assert layouts["gcc"] == layouts[MIXED] and len(set(layouts["gcc"])) == LAYOUTS
    other = experiment_of(experiment(blocks=4), Recipe(), CHOICES, HELD_OUT, seed=100)
    assert not {recipe.layout_seed for recipe in recipes(other, "gcc")} & set(layouts["gcc"])
    assert not {boot.seed for boot in plan_boots(other)} & {boot.seed for boot in plan_boots(run)}


def test_the_design_of_the_experiment_is_kept_where_it_says_one() -> None:
    run = experiment_of(experiment(blocks=24, layouts=8), Recipe(), CHOICES, HELD_OUT, seed=1)
    assert (run.layouts, run.blocks) == (8, 24)


def test_a_win_on_both_workloads_is_claimed_with_what_it_is_worth_against_the_best() -> None:
    sentence = claim(
        [
            judged("chosen by", against("gcc", 0.08, "faster"), against("clang", 0.03, "faster")),
            judged("held out", against("gcc", 0.02, "faster"), against("clang", 0.05, "faster")),
        ]
    )
    assert sentence.startswith("the mixed kernel beats every kernel of one choice")
    assert "+3.0 % on clang (chosen by)" in sentence and "+2.0 % on gcc (held out)" in sentence


def test_one_comparison_that_is_not_won_leaves_no_claim() -> None:
    sentence = claim(
        [
            judged("chosen by", against("gcc", 0.08, "faster"), against("clang", 0.03, "faster")),
            judged("held out", against("gcc", 0.02, "faster"), against("clang", 0.001, "equivalent")),
        ]
    )
    assert sentence.startswith("the mixed kernel does not beat the best kernel of one choice")
    assert "clang (held out: equivalent)" in sentence and "gcc" not in sentence


def test_without_a_comparison_nothing_is_claimed() -> None:
    assert "does not beat" in claim([judged("chosen by"), judged("held out")])
