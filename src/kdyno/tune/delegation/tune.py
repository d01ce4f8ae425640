"""Tunes a delegation: searches by trials, judges by runs, and claims only what the verdicts support."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kdyno.base.errors import UserError
from kdyno.base.lanes import COUNTED_LANE, LANES
from kdyno.base.talk import Talk
from kdyno.boot.registry import open_machine
from kdyno.judge.verdicts.assemble import Rejudge, assemble
from kdyno.kernel.arch import ARCHES
from kdyno.kernel.build import BuildPlan, plan_build
from kdyno.kernel.delegation.resolve import source_files
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from kdyno.kernel.trials import Trials, open_trials
from kdyno.measure.cycles.family import Family, load_family
from kdyno.measure.guest.job import TestOrder
from kdyno.measure.paths.table import HALVES, paths
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.runs.derive import TrainingPlanner
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.plan import block_seed, derived_seed, layout_seed
from kdyno.runs.experiment.tune import CompilerChoice, TuneConfig
from kdyno.runs.prepare import NothingToCount, require_runner
from kdyno.runs.run import run_experiment
from kdyno.runs.session import Session
from kdyno.runs.single_boots import PmuRun, SingleBoots
from kdyno.runs.train import make_inputs
from kdyno.store.artefacts import Artefacts
from kdyno.tune.delegation.delegation import plan_of
from kdyno.tune.delegation.found import Found, outcome_of
from kdyno.tune.delegation.group_testing import GroupTesting
from kdyno.tune.delegation.judgement import MIXED, JudgedRun, experiment_of, judge_reports
from kdyno.tune.delegation.kernels import AssignmentKernels, Replicate
from kdyno.tune.delegation.outlook import TuneProgress, search_ahead
from kdyno.tune.delegation.timing import TrialTimer


class TunedNameTaken(UserError):
    message = "[tune.choices] has a choice called {name}, which is the name of {what}"
    hint = "give the choice another name"


class SameTests(UserError):
    message = "[tune.held_out] has tests that [workload] has too: {tests}"
    hint = "name other tests there: the tests that choose a kernel cannot show that the choice is good"


class NothingHeldOut(UserError):
    message = "nothing is held out: [tune.held_out] is missing, and [workload] doesn't have both halves of the paths"
    hint = "name tests in [tune.held_out] that [workload] doesn't have: the search chooses by those of [workload]"


class NothingToChoose(UserError):
    message = "choice {name} is the compiler of the baseline {baseline}, {compiler}, without other flags"
    hint = "remove the choice, or give it flags: the baseline is always among the choices"


class AlreadyDelegated(UserError):
    message = "the baseline {baseline} has a delegation plan already"
    hint = "tune a baseline with one compiler, and combine its plan with yours by `extends`"


@dataclass(frozen=True)
class Tuning:
    """The checked subject of a search."""

    experiment: Experiment
    config: TuneConfig
    tests: tuple[TestOrder, ...]
    """The tests that the search chooses by."""
    held_out: WorkloadSettings
    """The tests that the search doesn't use."""
    family: Family
    family_named: str
    """The name of the family in the experiment."""
    is_timed: bool
    """Whether kernels are timed. If not, modelled cycles are the cost."""

    @property
    def recipe(self) -> Recipe:
        return self.experiment.variants[self.experiment.baseline]

    @property
    def replicates(self) -> list[Replicate]:
        """Link orders and seeds of the trials."""
        seed = self.trials_seed
        return [
            Replicate(layout_seed=layout_seed(seed, number), seed=block_seed(seed, number))
            for number in range(self.config.replicates)
        ]

    @property
    def trials_seed(self) -> int:
        return derived_seed(self.experiment.seed, "tune trials")

    @property
    def unit(self) -> str:
        """What costs are parts of."""
        return "time" if self.is_timed else "modelled cycles"

    @property
    def caption(self) -> str:
        """The caption of all costs."""
        cycles = f"cycles are {self.family.caption()}"
        if self.is_timed:
            return f"kernels are timed; modelled cycles divide a benchmark's time among files: {cycles}"
        return f"{cycles}; {self.family.gains_note()}"


def check_tuning(experiment: Experiment, config: TuneConfig) -> Tuning:
    """Check that the experiment can be tuned. Without a lane of time its machine models cycles. Raises KdynoError."""
    baseline, recipe = experiment.baseline, experiment.variants[experiment.baseline]
    if recipe.delegation is not None:
        raise AlreadyDelegated(baseline=baseline)
    for name, owner in ((baseline, "the baseline"), (MIXED, "the kernel that is found")):
        if name in config.choices:
            raise TunedNameTaken(name=name, what=owner)
    for name, choice in config.choices.items():
        if choice == CompilerChoice(compiler=recipe.toolchain):
            raise NothingToChoose(name=name, baseline=baseline, compiler=choice.compiler)
    if not experiment.workload.part(COUNTED_LANE.name).tests:
        raise NothingToCount(type=experiment.workload.type)
    chosen_by, other = (experiment.workload, config.held_out) if config.held_out else _halves(experiment.workload)
    for workload in (chosen_by, other):
        require_runner(workload, experiment.machine)
    tests, held_out = (workload.part(COUNTED_LANE.name).tests for workload in (chosen_by, other))
    if shared_tests := sorted({test.name for test in tests} & {test.name for test in held_out}):
        raise SameTests(tests=", ".join(shared_tests))
    pmu = experiment.machine.pmu_settings()
    counting = experiment.machine.with_pmu(pmu.model_copy(update={"events": "all", "clock": "cycles"}))
    is_timed = not LANES[experiment.machine.lane].is_repeatable
    machine = experiment.machine if is_timed else counting
    return Tuning(
        experiment=experiment.model_copy(
            update={"machine": machine, "name": f"{experiment.name}-tuned", "workload": chosen_by}
        ),
        config=config,
        tests=tests,
        held_out=other,
        family=load_family(pmu.family),
        family_named=pmu.family,
        is_timed=is_timed,
    )


def _halves(workload: WorkloadSettings) -> tuple[WorkloadSettings, WorkloadSettings]:
    """Return the paths of a workload to choose by, and those to judge by. Raise NothingHeldOut.

    A path with the name of a group is in neither: the name would stand for the group.
    """
    chosen = [paths()[test.name] for test in workload.part(COUNTED_LANE.name).tests if workload.runner == "kernel"]
    groups = {path.group for path in paths().values()}
    fit, held_out = ([path.name for path in chosen if path.half == half and path.name not in groups] for half in HALVES)
    if not (fit and held_out):
        raise NothingHeldOut
    return workload.select_tests(fit), workload.select_tests(held_out)


def search_files(tuning: Tuning, session: Session) -> Found:
    """Find the assignment. All images and boots are kept: the same call continues where it was interrupted."""
    experiment, config = tuning.experiment, tuning.config
    source = fetch(tuning.recipe.source or experiment.source, session.state, session.talk.say)
    machine = open_machine(experiment.machine)

    planner = TrainingPlanner(
        lambda spec: fetch(spec, session.state, session.talk.say),
        session.state,
        session.talk,
        session.carrier.open_machine,
    )

    def plan(recipe: Recipe) -> BuildPlan:
        base, arch = recipe.config or experiment.config, ARCHES[experiment.machine.arch]
        return plan_build(recipe, source, base, session.state, cpu=machine.cpu, trained=planner.trained, arch=arch)

    timer = TrialTimer(experiment, tuning.trials_seed, config.replicates, session)
    with open_trials(session.state, session.talk.say) as trials:
        kernels = AssignmentKernels(
            recipe=tuning.recipe,
            choices=config.choices,
            replicates=tuning.replicates,
            family=tuning.family,
            build=_builder(trials, plan, session.talk),
            boot=_booter(tuning, session),
            time=timer.ratios if tuning.is_timed else None,
        )
        first = [plan(kernels.recipe_of({}, replicate)) for replicate in kernels.replicates]
        for line in search_ahead(first, len(config.choices), timer if tuning.is_timed else None, experiment, session):
            session.talk.say(line)
        make_inputs(planner.ahead(first), session)
        search = GroupTesting(tuple(config.choices), config.hot)
        progress = TuneProgress(search, tuning.unit, session.talk)
        requests = search.run(source_files(source.tree))
        try:
            assignment = next(requests)
            while True:
                progress.begin(assignment)
                trial = kernels.measure(assignment)
                progress.end(trial, kernels.failures)
                assignment = requests.send(trial)
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
    """Run the mixed kernel against each kernel of one choice on both workloads.

    Returns the judgements, and whether a boot was lost.
    """
    seed = tuning.experiment.seed
    workloads: Mapping[str, WorkloadSettings] = {
        "chosen by": tuning.experiment.workload,
        "held out": tuning.held_out,
    }
    mixed = tuning.recipe.model_copy(update={"delegation": plan_of(result.assignment, tuning.config.choices)})
    judgements, is_lost = [], False
    for name, workload in workloads.items():
        session.talk.say(f"judging on the workload {name}")
        run = experiment_of(
            tuning.experiment, mixed, tuning.config.choices, workload, derived_seed(seed, f"tune judging {name}")
        )
        finished_run = run_experiment(run, session, again=False)
        artefacts = Artefacts(session.state.artefacts)
        baselines = [variant for variant in run.variants if variant != MIXED]
        reports = [
            assemble(session.store, finished_run.run_id, artefacts, Rejudge(variant), analysed=False)
            for variant in baselines
        ]
        given_up = {variant: reason for variant, reason in finished_run.outcome.given_up.items() if variant != MIXED}
        judgements.append(judge_reports(name, reports, given_up))
        is_lost = is_lost or bool(finished_run.outcome.lost)
    return judgements, is_lost
