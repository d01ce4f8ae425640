"""Tuning a delegation: search by trials, judge by runs, and say no more than the verdicts do."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kdyno.base.errors import UserError
from kdyno.base.lanes import COUNTED_LANE
from kdyno.base.talk import Talk
from kdyno.boot.registry import open_machine
from kdyno.judge.verdicts.assemble import Rejudge, assemble
from kdyno.kernel.build import BuildPlan, plan_build
from kdyno.kernel.delegation.resolve import source_files
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from kdyno.kernel.trials import Trials, open_trials
from kdyno.measure.cycles.family import Family, load_family
from kdyno.measure.guest.job import TestOrder
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.plan import SEED_BITS, block_seed
from kdyno.runs.experiment.tune import CompilerChoice, TuneConfig
from kdyno.runs.prepare import NothingToCount
from kdyno.runs.run import run_experiment
from kdyno.runs.session import Session
from kdyno.runs.single_boots import PmuRun, SingleBoots
from kdyno.store.artefacts import Artefacts
from kdyno.tune.delegation.delegation import plan_of
from kdyno.tune.delegation.found import Found, outcome_of
from kdyno.tune.delegation.group_testing import GroupTesting
from kdyno.tune.delegation.judgement import MIXED, JudgedRun, experiment_of, judged
from kdyno.tune.delegation.kernels import AssignmentKernels, Replicate
from kdyno.tune.delegation.outlook import TuneProgress, search_ahead


class TunedNameTaken(UserError):
    message = "[tune.choices] has a choice called {name}, which is what {what} is called"
    hint = "give the choice another name"


class SameTests(UserError):
    message = "[tune.held_out] has tests that [workload] has too: {tests}"
    hint = "what a kernel is chosen by can't show that it was chosen well: name other tests there"


class NothingToChoose(UserError):
    message = "choice {name} is what the baseline {baseline} is made by: {compiler}, without other flags"
    hint = "the baseline is always among what is chosen from: leave the choice out, or give it flags"


class AlreadyDelegated(UserError):
    message = "the baseline {baseline} has a delegation plan already"
    hint = "tune a baseline that one compiler makes; add the plan that comes of it to yours by `extends`"


@dataclass(frozen=True)
class Tuning:
    """What is to be tuned, checked."""

    experiment: Experiment
    config: TuneConfig
    tests: tuple[TestOrder, ...]
    """What it is chosen by."""
    family: Family
    family_named: str
    """As the experiment names it."""

    @property
    def recipe(self) -> Recipe:
        return self.experiment.variants[self.experiment.baseline]

    @property
    def replicates(self) -> list[Replicate]:
        """Link orders and seeds of the trials."""
        seed = derived(self.experiment.seed, "trials")
        return [
            Replicate(layout_seed=derived(seed, f"layout {number}"), seed=block_seed(seed, number))
            for number in range(self.config.replicates)
        ]


def checked(experiment: Experiment, config: TuneConfig) -> Tuning:
    """Refuse what can't be tuned; the machine is made to model cycles. Raises KdynoError."""
    baseline, recipe = experiment.baseline, experiment.variants[experiment.baseline]
    if recipe.delegation is not None:
        raise AlreadyDelegated(baseline=baseline)
    for name, what in ((baseline, "the baseline"), (MIXED, "the kernel that is found")):
        if name in config.choices:
            raise TunedNameTaken(name=name, what=what)
    for name, choice in config.choices.items():
        if choice == CompilerChoice(compiler=recipe.toolchain):
            raise NothingToChoose(name=name, baseline=baseline, compiler=choice.compiler)
    if not experiment.workload.part(COUNTED_LANE.name).tests:
        raise NothingToCount(type=experiment.workload.type)
    tests, held_out = (of.part(COUNTED_LANE.name).tests for of in (experiment.workload, config.held_out))
    if both := sorted({test.name for test in tests} & {test.name for test in held_out}):
        raise SameTests(tests=", ".join(both))
    pmu: PmuConfig = getattr(experiment.machine, "pmu", None) or PmuConfig()
    machine = experiment.machine.with_pmu(pmu.model_copy(update={"events": "all", "clock": "cycles"}))
    return Tuning(
        experiment=experiment.model_copy(update={"machine": machine, "name": f"{experiment.name}-tuned"}),
        config=config,
        tests=tests,
        family=load_family(pmu.family),
        family_named=pmu.family,
    )


def derived(seed: int, what: str) -> int:
    """Another seed, below 2**31, for one of the things that must share no randomness."""
    named = f"kdyno tune {seed} {what}"
    return int.from_bytes(hashlib.sha256(named.encode()).digest()[:4]) >> (32 - SEED_BITS)


def search_files(tuning: Tuning, session: Session) -> Found:
    """Find the assignment. All images and boots are kept: the same call goes on where it was interrupted."""
    experiment, config = tuning.experiment, tuning.config
    source = fetch(tuning.recipe.source or experiment.source, session.state, session.talk.say)
    machine = open_machine(experiment.machine)

    def plan(recipe: Recipe) -> BuildPlan:
        return plan_build(recipe, source, recipe.config or experiment.config, session.state, cpu=machine.cpu)

    with open_trials(session.state, session.talk.say) as trials:
        kernels = AssignmentKernels(
            recipe=tuning.recipe,
            choices=config.choices,
            replicates=tuning.replicates,
            family=tuning.family,
            build=_builder(trials, plan, session.talk),
            boot=_booter(tuning, session),
        )
        first = [plan(kernels.recipe_of({}, replicate)) for replicate in kernels.replicates]
        for line in search_ahead(first, len(config.choices), session.state, session.store):
            session.talk.say(line)
        search = GroupTesting(tuple(config.choices), config.hot)
        progress = TuneProgress(search, session.talk)
        asked = search.run(source_files(first[0].tree))
        try:
            wanted = next(asked)
            while True:
                progress.begin(wanted)
                trial = kernels.measure(wanted)
                progress.end(trial, kernels.failures)
                wanted = asked.send(trial)
        except StopIteration:
            return outcome_of(search, kernels)


def _builder(trials: Trials, plan: Callable[[Recipe], BuildPlan], talk: Talk) -> Callable[..., list[Image]]:
    def build(recipes: Sequence[Recipe]) -> list[Image]:
        plans = [plan(recipe) for recipe in recipes]
        with talk.working("building", is_estimate=True) as advance:
            return trials.build(plans, advance)

    return build


def _booter(tuning: Tuning, session: Session) -> Callable[[Image, int], PmuRun]:
    boots = SingleBoots(replace(session, talk=Talk(quiet=True)))

    def boot(image: Image, seed: int) -> PmuRun:
        return boots.count(
            image,
            tuning.experiment.workload.load(),
            seed=seed,
            events="all",
            family=tuning.family_named,
            cmdline=tuning.recipe.words,
            settings=tuning.experiment.machine,
        )

    return boot


def judge_mixed(tuning: Tuning, result: Found, session: Session) -> tuple[list[JudgedRun], bool]:
    """Run the mixed kernel against each kernel of one choice, on both workloads; whether a boot was lost on the way."""
    seed = tuning.experiment.seed
    workloads: Mapping[str, WorkloadSettings] = {
        "chosen by": tuning.experiment.workload,
        "held out": tuning.config.held_out,
    }
    mixed = tuning.recipe.model_copy(update={"delegation": plan_of(result.assignment, tuning.config.choices)})
    judgements, is_lost = [], False
    for name, workload in workloads.items():
        session.talk.say(f"judging on the workload {name}")
        run = experiment_of(tuning.experiment, mixed, tuning.config.choices, workload, derived(seed, f"judging {name}"))
        done = run_experiment(run, session, again=False)
        artefacts = Artefacts(session.state.artefacts)
        against = [variant for variant in run.variants if variant != MIXED]
        reports = [
            assemble(session.store, done.run_id, artefacts, Rejudge(variant), analysed=False) for variant in against
        ]
        given_up = {variant: why for variant, why in done.outcome.given_up.items() if variant != MIXED}
        judgements.append(judged(name, reports, given_up))
        is_lost = is_lost or bool(done.outcome.lost)
    return judgements, is_lost
