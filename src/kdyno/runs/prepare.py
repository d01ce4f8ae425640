"""Checks an experiment against this host, and plans its images with their keys, before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from kdyno.base.cpu import Cpu
from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import Description, MachineBackend, MachineSettings, MachineUnreachable
from kdyno.boot.registry import OpenMachine, open_machine
from kdyno.kernel.arch import ARCHES
from kdyno.kernel.boot_tests import disable_boot_tests
from kdyno.kernel.build import BuildPlan, plan_build
from kdyno.kernel.built_kernels.plan import GivenPlan
from kdyno.kernel.plan import check_early
from kdyno.kernel.recipe import RUNTIME, Recipe
from kdyno.kernel.source import fetch
from kdyno.kernel.source import require as require_source
from kdyno.measure.cycles.events import counted_events
from kdyno.measure.guest.job import Job
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.runs.derive import PlannedTraining, TrainingPlanner
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.plan import named_variants, recipes
from kdyno.runs.given import fit_machine, given_plans, require_startable
from kdyno.runs.images import Plan, Plans


@dataclass(frozen=True)
class Builds:
    """The builds of an experiment."""

    plans: Plans
    trainings: tuple[PlannedTraining, ...] = ()
    """The inputs that are made before the images, in order."""


class NothingBuilt(UserError):
    message = "variant {variant} sets `{knob}`, but a machine of type `{type}` builds and boots nothing"
    hint = 'use only {runtime} there; or set type = "qemu" in [machine]'


class NotCarriedOut(UserError):
    message = "a workload of type `{workload}` cannot be carried out on a machine of type `{machine}`: {why}"
    hint = "{way}"


class NothingToMeasure(UserError):
    message = "the workload of type `{type}` names nothing to measure"
    hint = "name at least one of its `tests`, or remove the key to have its default"


class NothingToCount(UserError):
    message = "[machine.pmu] counts the marked loops of the agent's tests; a workload of type `{type}` runs none"
    hint = "remove [machine.pmu], or give a metric an `event` of a region that the command marks"


class NothingCounts(UserError):
    message = "nothing counts the events of metrics: {events}"
    hint = 'add [machine.pmu] with events = "all", and scope = "all" for those of user code (lane "model")'


class EventNotCounted(UserError):
    message = "[machine.pmu] doesn't count {events}"
    hint = 'set events = "all", and scope = "all" for those of user code; docs/lanes.md lists them'


@dataclass(frozen=True)
class Prepared:
    """An experiment that has been checked against this host, with everything that is known before the builds."""

    experiment: Experiment
    """The experiment as it was resolved: its machine may still be open."""
    settings: MachineSettings
    """The chosen machine: that of the experiment, on which built kernels can be started."""
    machine: MachineBackend
    about: Description
    job: Job
    plans: Plans
    """Empty if the machine boots without images."""
    trainings: tuple[PlannedTraining, ...] = ()
    """The inputs that are made before the images, in order."""
    requirement: str = ""
    """What the machine must be, and why it could not be reached; empty: it was reached."""

    @property
    def recorded(self) -> str:
        """The experiment as JSON with the chosen machine, which carries out the same run on another host."""
        return self.experiment.model_copy(update={"machine": self.settings}).model_dump_json()

    def cmdline(self, variant: str) -> tuple[str, ...]:
        """Return the kernel command line of a variant's measured boots: its own words, and those that turn off the
        tests of a kernel by itself.
        """
        words, plans = self.experiment.variants[variant].words, self.plans.get(variant, ())
        return disable_boot_tests(words, plans[0].asked) if plans else words

    def require_cpu(self) -> None:
        """Raise CpuLacks if the CPU of the machine lacks something that an image needs. May ask the machine."""
        for variant, (first, *_) in self.plans.items():
            self.machine.require_cpu(first.needs, f"variant {variant}")


def prepare(
    experiment: Experiment,
    state: State,
    talk: Talk,
    *,
    may_be_unreachable: bool = False,
    open_machine: OpenMachine = open_machine,
) -> Prepared:
    """Check everything that needs no build and no boot. Raises KdynoError.

    A machine that may be unreachable, and is, is described without its facts: such a run can only be forecast.
    """
    variants = experiment.variants
    require_runner(experiment.workload, experiment.machine)
    plan_by_built_variant = given_plans(experiment, variants, state, talk)
    settings = fit_machine(experiment.machine, plan_by_built_variant)
    machine = open_machine(settings)
    needs, requirement = experiment.workload.needs(), ""
    try:
        machine.provide(needs, state, talk)
        about = machine.describe()
    except MachineUnreachable as error:
        if not may_be_unreachable:
            raise
        about, requirement = settings.describe_unreachable(), f"{settings.requirement(needs)}; {error}"
    _require_counted(experiment.workload, about.pmu)
    for variant, recipe in variants.items():
        if not settings.starts_kernels:
            _require_runtime(variant, recipe, settings.type)
        machine.require_cmdline(recipe.words, f"variant {variant}")
    part = experiment.workload.part(about.lane)
    if not (part.tests or part.programs):
        raise NothingToMeasure(type=experiment.workload.type)
    for notice in about.notices:
        talk.say(f"note: {notice}")  # not a warning: the report has it in its first line
    job = about.job(part.iterations, tests=part.tests, programs=part.programs)
    builds = (
        _plan_all(experiment, variants, plan_by_built_variant, machine.cpu, state, talk, open_machine)
        if about.needs_images
        else Builds({})
    )
    for variant, (first, *_) in builds.plans.items():
        settings.require_cpus(first.asked, f"the kernel of variant {variant}")
        require_startable(settings, variant, first, has_given=bool(plan_by_built_variant))
    return Prepared(experiment, settings, machine, about, job, builds.plans, builds.trainings, requirement)


def require_runner(workload: WorkloadSettings, machine: MachineSettings) -> None:
    """Raise NotCarriedOut if the machine can't carry out the workload."""
    if workload.runner == machine.runner:
        return
    if machine.runner == "kernel":
        why = "its kernel starts no program, and runs paths through itself"
        way = 'take `type = "paths"` in [workload], or another machine'
    else:
        why, way = "only a kernel that is a process runs paths", 'take `type = "uml"` in [machine], or another workload'
    raise NotCarriedOut(workload=workload.type, machine=machine.type, why=why, way=way)


def _require_counted(workload: WorkloadSettings, pmu: PmuConfig | None) -> None:
    """Raise NothingToCount, NothingCounts or EventNotCounted if workload and emulated PMU don't match."""
    events = workload.events()
    if pmu is None:
        if events:
            raise NothingCounts(events=", ".join(events))
        return
    if not events and not workload.load().names:
        raise NothingToCount(type=workload.type)
    if unknown := set(events) - set(counted_events(pmu.events, pmu.scope)):
        raise EventNotCounted(events=", ".join(sorted(unknown)))


def _require_runtime(variant: str, recipe: Recipe, machine_type: str) -> None:
    """Raise NothingBuilt for a recipe with knobs that don't apply to a running kernel."""
    for knob in sorted(recipe.model_fields_set):
        if knob not in RUNTIME and getattr(recipe, knob) != getattr(Recipe(), knob):
            raise NothingBuilt(variant=variant, knob=knob, type=machine_type, runtime=", ".join(RUNTIME))


def plan_builds(experiment: Experiment, state: State, talk: Talk, names: Sequence[str] = ()) -> Builds:
    """Plan the builds of the named variants, or of all, and ask the machine nothing except for its CPU.

    Raises KdynoError for every build that is known to fail.
    """
    variants = named_variants(experiment, names)
    cpu = open_machine(experiment.machine).cpu
    return _plan_all(
        experiment, variants, given_plans(experiment, variants, state, talk), cpu, state, talk, open_machine
    )


def _plan_all(
    experiment: Experiment,
    variants: Mapping[str, Recipe],
    given: Mapping[str, GivenPlan],
    cpu: Callable[[], Cpu],
    state: State,
    talk: Talk,
    open_it: OpenMachine,
) -> Builds:
    """Plan the builds of these variants; `given` has the plans of built kernels by variant."""
    built_here = [recipe for recipe in variants.values() if recipe.image is None]
    arch = ARCHES[experiment.machine.arch]
    check_early(built_here, experiment.config, state, arch)
    for spec in dict.fromkeys(recipe.source or experiment.source for recipe in built_here):
        require_source(spec, state)
    source_of = cache(lambda spec: fetch(spec, state, talk.say))
    planner = TrainingPlanner(source_of, state, talk, open_it)
    plans: dict[str, tuple[Plan, ...]] = {
        name: (given[name],)
        if name in given
        else tuple(
            plan_build(
                recipe,
                source_of(recipe.source or experiment.source),
                recipe.config or experiment.config,
                state,
                cpu=cpu,
                trained=planner.trained,
                arch=arch,
            )
            for recipe in recipes(experiment, name)
        )
        for name in variants
    }
    for name, (first, *_) in plans.items():
        for note in first.notes:
            talk.say(f"note: {name}: {note}")
    all_plans = [plan for layouts in plans.values() for plan in layouts]
    return Builds(plans, planner.ahead(plan for plan in all_plans if isinstance(plan, BuildPlan)))
