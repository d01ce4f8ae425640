"""Carrying a self-test out: one long run of one image under two names, cut into experiments of a few blocks."""

from __future__ import annotations

from datetime import UTC, datetime

from kdyno.errors import UserError
from kdyno.experiment.models import Experiment
from kdyno.kernel.recipe import Recipe
from kdyno.lanes import Lane
from kdyno.line.run import run_experiment
from kdyno.machine.qemu import QemuConfig
from kdyno.selftest.judge import Design, judge_all
from kdyno.state import State
from kdyno.store.store import Store
from kdyno.talk import Talk
from kdyno.verdicts.assemble import with_unlisted
from kdyno.verdicts.selftest import SelfTest
from kdyno.verdicts.values import observations

NAMES = ("A", "B")
FEWEST_BLOCKS = 3


class Unfinished(UserError):
    message = "the self-test is unfinished: {lost} boots were lost; the first: {why}"
    hint = "the same command does them again"


class NothingMeasured(UserError):
    message = "no boot of the self-test measured anything; see `kdyno show {run}`"
    hint = "does `kdyno run` work with the same kernel?"


def own_experiment(lane: Lane) -> Experiment:
    """What is tested if no experiment is named: the kernel that is the demo's baseline."""
    return Experiment(
        name="selftest",
        source="debian:linux-source-6.12",
        baseline="gcc-O2",
        variants={"gcc-O2": Recipe(toolchain="gcc", opt="O2", lines=True)},
        machine=QemuConfig(lane=lane),
    )


def aa_experiment(of: Experiment, experiments: int, blocks: int, tests: tuple[str, ...]) -> Experiment:
    """The run that holds all A/A experiments: the baseline under two names, each boot with a seed of its own.

    With shared seeds the model lane gives the same count twice, and could never be wrong.
    """
    recipe = of.variants[of.baseline]
    return of.model_copy(
        update={
            "name": f"{of.name}-aa",
            "variants": dict.fromkeys(NAMES, recipe),
            "baseline": NAMES[0],
            "blocks": experiments * blocks,
            "auto": False,
            "layouts": 0,
            "seeds": "own",
            "workload": of.workload.only(tests),
            "judge": of.judge.model_copy(update={"looks": 1}),
        }
    )


def selftest(
    of: Experiment,
    experiments: int,
    blocks: int,
    tests: tuple[str, ...],
    *,
    state: State,
    store: Store,
    talk: Talk,
    again: bool,
) -> SelfTest:
    """Boot, judge every A/A experiment, and keep what came out. An interrupted self-test goes on where it stopped."""
    experiment = aa_experiment(of, experiments, blocks, tests)
    done = run_experiment(experiment, state, store, talk, again=again)
    if done.outcome.lost:
        raise Unfinished(lost=len(done.outcome.lost), why=next(iter(done.outcome.lost.values())))
    run, boots = store.run(done.run_id), store.boots(done.run_id)
    observed = [
        benchmark
        for benchmark in observations(boots, with_unlisted(store.benchmarks(run.id), boots), NAMES)
        if set(NAMES) <= benchmark.groups.keys()
    ]
    if not observed:
        raise NothingMeasured(run=run.id)
    design = Design(experiments, blocks, of.blocks, run.margin, run.alpha, run.correction)
    family_wise, tested = judge_all(observed, NAMES, design)
    images = run.variants[0].images
    result = SelfTest(
        run=run.id,
        created=datetime.now(UTC),
        host=run.host,
        lane=run.lane,
        machine=run.machine,
        image=images[0].key if images else None,
        experiments=experiments,
        blocks=blocks,
        planned=of.blocks,
        margin=run.margin,
        alpha=run.alpha,
        correction=run.correction,
        family_wise=family_wise,
        benchmarks=tested,
    )
    store.keep_selftest(run.id, result.created, result.model_dump(mode="json"))
    return result
