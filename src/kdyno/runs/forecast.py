"""The forecast of a run: images, boots, time and reasons. Every estimate names its basis."""

from __future__ import annotations

import math
import os
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

from pydantic import computed_field

from kdyno.base.frozen import Frozen, digest
from kdyno.base.lanes import COUNTED_LANE, LaneName
from kdyno.base.state import State
from kdyno.kernel import ccache, estimate
from kdyno.kernel.build import BuildPlan
from kdyno.kernel.built_kernels.plan import GivenPlan
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.images import records
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.measure.workload.registry import default_workload
from kdyno.runs.checks import checks_left
from kdyno.runs.derive import PlannedTraining, boot_kind, boots_left, boots_to_do
from kdyno.runs.experiment.plan import PlannedBoot
from kdyno.runs.images import Plan, Plans
from kdyno.runs.prepare import Prepared
from kdyno.runs.run_plan import RunPlan
from kdyno.store.store import Store

LINK_SECONDS = 10.0
"""The longest time of a link for another layout, on a machine with 2 cores."""
CHECK_SECONDS = 30.0
"""A guess: the 20 suites of Linux 6.12 that need no other symbols took 21 to 34 s under TCG."""
LINK_SECONDS_FROM = "a guess: what a link takes on 2 cores, at most"
USUAL = 0.75
"""The share of recorded builds that took no longer than the forecast: ccache makes some builds short, and other work on
the host makes some of them very long.
"""


Decision = Literal["build", "link", "cached", "shared"]


@dataclass(frozen=True)
class BuildForecast:
    """The forecast for the image of one variant."""

    variant: str
    key: str
    decision: Decision
    why: str
    seconds: float | None = 0.0
    """None: without the configuration the time cannot even be guessed."""
    seconds_from: str = ""
    """The basis of the seconds; empty if there is nothing to do."""
    guess: bool = False
    """The seconds were not measured here."""
    cached_objects: bool = False
    """ccache is installed. Its objects make the time shorter, by an amount that is not known before."""
    kernel: str = ""
    """The version of the source: `6.12.117`."""
    config: str = ""
    """The base configuration."""


@dataclass(frozen=True)
class TrainingForecast:
    """The forecast for one input that is made of boots before the images that use it."""

    use: str
    """The kind of the input: `autofdo`."""
    variant: str
    """The variant that is booted for it."""
    image: str
    """The key of the image that is booted."""
    tests: tuple[str, ...]
    boots: int
    left: int
    """Boots that are not on record yet."""


class Forecast(Frozen):
    """The forecast of a run; `kdyno plan --json` prints it."""

    run: str
    """The id; empty if the machine could not be reached, whose facts are part of it."""
    builds: tuple[BuildForecast, ...]
    boots: tuple[PlannedBoot, ...]
    """The boots that are not on record yet, in order."""
    boots_done: int
    boot_seconds: float
    boot_seconds_from: str
    boot_guess: bool
    """The seconds were not measured here."""
    side_by_side: int
    trainings: tuple[TrainingForecast, ...] = ()
    """The inputs that are made of boots before the builds, in order."""
    training_boots: int = 0
    """The number of boots for training, which come before the builds."""
    training_seconds: float = 0.0
    training_guess: bool = False
    check_boots: int = 0
    """The number of boots in which kernels run their own tests."""
    requirement: str = ""
    """What the machine must be, and why it could not be reached; empty: it was reached."""
    confirmation: ConfirmationForecast | None = None
    """The run on this processor that comes after the verdicts; None unless the experiment asks for it."""

    def after(self, before: Forecast) -> Forecast:
        """Return the forecast without the images and the training of a run that is carried out before."""
        keys = {build.key for build in before.builds}
        trained = {(training.use, training.image) for training in before.trainings}
        trainings = tuple(one for one in self.trainings if (one.use, one.image) not in trained)
        no_training = {"training_boots": 0, "training_seconds": 0.0, "training_guess": False}
        return self.model_copy(
            update={
                "builds": tuple(build for build in self.builds if build.key not in keys),
                "trainings": trainings,
                **({} if trainings else no_training),
            }
        )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def seconds(self) -> float | None:
        """The total in seconds; None if the time of a build is not known."""
        builds = [build.seconds for build in self.builds]
        if any(seconds is None for seconds in builds):
            return None
        return sum(seconds for seconds in builds if seconds) + self.seconds_of_boots

    @property
    def seconds_of_boots(self) -> float:
        """The seconds of all boots: measured, for training and for checks."""
        checks = ceil(self.check_boots / self.side_by_side) * CHECK_SECONDS
        return len(self.boots) * self.boot_seconds / self.side_by_side + self.training_seconds + checks

    @computed_field  # type: ignore[prop-decorator]
    @property
    def guessed(self) -> tuple[str, ...]:
        """The kinds of steps whose time is a guess, at least in part; empty if all times were measured here."""
        guessed_decisions = [build.decision for build in self.builds if build.guess]
        boots = (self.boots and self.boot_guess) or (self.training_boots and self.training_guess)
        return tuple(dict.fromkeys([*guessed_decisions, *(["boot"] if boots or self.check_boots else [])]))


class ConfirmationForecast(Frozen):
    """The forecast of a confirmation on this processor."""

    ahead: Forecast | None
    """None if no variant can be had there."""
    left_out: dict[str, str]
    """Variants that can't be had there, with the reasons."""


Forecast.model_rebuild()


def forecast(prepared: Prepared, plan: RunPlan, state: State, store: Store) -> Forecast:
    """Forecast a run from the cache and from earlier runs, without builds and boots."""
    about = prepared.about
    progress = plan.progress(store)
    boots = tuple(plan.boots_of(progress.left))
    training_boots = boots_left(prepared.trainings, store)
    training_times = {
        kind: boot_time(COUNTED_LANE.name, kind[0], default_workload(kind[1]), store) for kind in training_boots
    }
    workload = prepared.experiment.workload
    counted_events = about.pmu.events if about.pmu else None
    boot_seconds, boot_basis, boot_guess = boot_time(about.lane, counted_events, workload, store)
    return Forecast(
        run="" if prepared.requirement else plan.id,
        builds=forecast_builds(prepared.plans, state, prepared.trainings),
        boots=boots,
        boots_done=len(plan.boots_of(progress.ended)),
        boot_seconds=boot_seconds,
        boot_seconds_from=boot_basis,
        boot_guess=boot_guess,
        side_by_side=about.parallel,
        trainings=tuple(_training(planned, store) for planned in prepared.trainings),
        training_boots=sum(training_boots.values()),
        training_seconds=sum(
            ceil(boots_to_do(planned, store) / planned.side_by_side) * training_times[boot_kind(planned)][0]
            for planned in prepared.trainings
        ),
        training_guess=any(training_times[kind][2] for kind, boots in training_boots.items() if boots),
        check_boots=checks_left(prepared, store),
        requirement=prepared.requirement,
    )


def forecast_builds(plans: Plans, state: State, trainings: Sequence[PlannedTraining] = ()) -> tuple[BuildForecast, ...]:
    """Forecast the builds from the cache: each image of each variant, and the images that are booted only to train."""
    run_keys = {plan.key for layouts in plans.values() for plan in layouts}
    only_booted = {
        planned.plan.key: (planned.training.variant, planned.plan)
        for planned in trainings
        if planned.plan.key not in run_keys
    }
    plan_by_name = [(_layout_name(variant, plan), plan) for variant, layouts in plans.items() for plan in layouts]
    similar = _SimilarBuilds(state)
    first: dict[str, str] = {}
    compiled: dict[str, tuple[str, BuildPlan]] = {}
    builds = []
    all_plans: list[tuple[str, Plan]] = [*only_booted.values(), *plan_by_name]
    for number, (variant, plan) in enumerate(all_plans):
        if number == len(only_booted):
            compiled.clear()  # what is only booted is built before, and its objects are gone
        if plan.key in first:
            reason = f"same image as {first[plan.key]}: at most the command lines differ"
            builds.append(_build_forecast(plan, variant, "shared", reason))
            continue
        first[plan.key] = variant
        if isinstance(plan, GivenPlan):
            builds.append(_build_forecast(plan, variant, "cached", "built outside of kdyno"))
        elif plan.cached:
            builds.append(_build_forecast(plan, variant, "cached", "built before"))
        elif plan.objects_key in compiled:
            compiled_variant, compiled_plan = compiled[plan.objects_key]
            exception = (
                ""
                if plan.delegation == compiled_plan.delegation
                else ", except those that its delegation compiles again"
            )
            reason = f"another link of the objects of {compiled_variant}{exception}"
            builds.append(_build_forecast(plan, variant, "link", reason, _link_time(plan, similar)))
        else:
            compiled[plan.objects_key] = variant, plan
            reason = "no image of this source, configuration, recipe and compiler yet"
            builds.append(_build_forecast(plan, variant, "build", reason, _build_time(plan, similar)))
    return tuple(builds)


def usual_build(plan: BuildPlan, state: State) -> tuple[float | None, float, bool]:
    """Return the seconds of a build like this one and of a link, and whether that of the build is a guess; None if it
    is unknown.
    """
    similar = _SimilarBuilds(state)
    build, _, is_guess = _build_time(plan, similar)
    return build, _link_time(plan, similar)[0], is_guess


def _build_forecast(
    plan: Plan, variant: str, decision: Decision, reason: str, time: tuple[float | None, str, bool] = (0.0, "", False)
) -> BuildForecast:
    """Return the forecast. `time` has the seconds, their basis, and whether they are a guess."""
    has_cached_objects = decision == "build" and ccache.is_installed()
    return BuildForecast(
        variant,
        plan.key,
        decision,
        reason,
        *time,
        has_cached_objects,
        kernel=plan.source.version,
        config=plan.base.spec,
    )


def _training(planned: PlannedTraining, store: Store) -> TrainingForecast:
    training = planned.training
    return TrainingForecast(
        use=planned.derivation.exporter,
        variant=training.variant,
        image=planned.plan.key,
        tests=training.load.names,
        boots=len(training.seeds),
        left=boots_to_do(planned, store),
    )


def _layout_name(variant: str, plan: Plan) -> str:
    return variant if plan.recipe.layout_seed is None else f"{variant}, layout {plan.recipe.layout_seed}"


def _build_time(plan: BuildPlan, similar: _SimilarBuilds) -> tuple[float | None, str, bool]:
    """Return the seconds of a build, their basis, and whether they are a guess. ccache may make the build faster."""
    if recorded := similar.builds(plan):
        return *_usual_time(recorded, "build", plan), False
    files = estimate.files_of(plan)
    if files is None:
        return None, f"unknown: only configuring tells how much {plan.base.spec} compiles", False
    if paces := similar.paces(plan):
        family = plan.toolchain.identity.family
        basis = f"a guess: {files:,} files to compile, as fast as other configurations by {family} here"
        return _usual(paces) * estimate.lines_of_files(files), basis, True
    cores = os.cpu_count() or 1
    basis = f"a guess: {files:,} files to compile on {cores} {'core' if cores == 1 else 'cores'}"
    return estimate.seconds(files, plan.toolchain.identity.family, cores), basis, True


def _link_time(plan: BuildPlan, similar: _SimilarBuilds) -> tuple[float, str, bool]:
    """Return the seconds of a link of objects that exist, their basis, and whether they are a guess."""
    if recorded := similar.links(plan):
        return *_usual_time(recorded, "link", plan), False
    return LINK_SECONDS, LINK_SECONDS_FROM, True


def _usual_time(seconds: Sequence[float], what: str, plan: BuildPlan) -> tuple[float, str]:
    """Return what most of the recorded builds or links took, in seconds, and which they are."""
    of_what = f"of {plan.base.spec} by {plan.toolchain.identity.family} here"
    if len(seconds) == 1:
        return seconds[0], f"measured: the only {what} {of_what}"
    return _usual(seconds), f"measured: three of four of the {len(seconds):,} {what}s {of_what} took no longer"


def _usual(seconds: Sequence[float]) -> float:
    return sorted(seconds)[math.ceil(USUAL * (len(seconds) - 1))]


class _SimilarBuilds:
    """The times of images that exist, whatever their source and recipe are, in seconds: of builds, and of links of the
    objects of a build.

    Of images that differ only in their link order the longest is a build: the others are links of its objects.
    """

    def __init__(self, state: State) -> None:
        self._builds = defaultdict[tuple[str, ...], list[float]](list)
        self._links = defaultdict[tuple[str, ...], list[float]](list)
        self._paces = defaultdict[tuple[str, ...], list[float]](list)
        by_objects = defaultdict[tuple[tuple[str, ...], str], list[ImageRecord]](list)
        for record in records(state):
            kind: tuple[str, ...] = (record.arch, record.base, record.toolchain.family)
            if record.recipe.layout_seed is None:
                self._add_build(kind, record)
                continue
            recipe = record.recipe.model_dump(mode="json", exclude={"layout_seed"})
            objects = digest([recipe, record.source.identity, record.toolchain.digest, record.config_sha256])
            by_objects[kind, objects].append(record)
        for (kind, _), images in by_objects.items():
            *links, build = sorted(images, key=lambda image: image.build_seconds)
            self._add_build(kind, build)
            self._links[kind] += [link.build_seconds for link in links]

    def _add_build(self, kind: tuple[str, ...], record: ImageRecord) -> None:
        arch, _, family = kind
        self._builds[kind].append(record.build_seconds)
        if record.steps:
            self._paces[arch, family].append(record.build_seconds / record.steps)

    def builds(self, plan: BuildPlan) -> list[float]:
        """Return the times of builds with the architecture, base configuration and compiler of a plan."""
        return self._builds[_kind(plan)]

    def paces(self, plan: BuildPlan) -> list[float]:
        """Return the seconds that a step took in each build with the architecture and compiler of a plan."""
        return self._paces[plan.arch_name, plan.toolchain.identity.family]

    def links(self, plan: BuildPlan) -> list[float]:
        """Return the times of links with the architecture, base configuration and compiler of a plan."""
        return self._links[_kind(plan)]


def _kind(plan: BuildPlan) -> tuple[str, ...]:
    return (plan.arch_name, plan.base.spec, plan.toolchain.identity.family)


def boot_time(lane: LaneName, events: str | None, workload: WorkloadSettings, store: Store) -> tuple[float, str, bool]:
    """Return the seconds of a boot, their basis, and whether they are a guess.

    They are those of the newest run in the same lane with the same events and the same type of workload: the emulated
    PMU makes a boot take twice as long.
    """
    if recorded_seconds := store.boot_seconds(lane, events, workload.type):
        run_id, seconds = recorded_seconds
        return statistics.median(seconds), f"median of run {run_id}", False
    return workload.first_boot_seconds(lane), "a guess: no boot with this lane, workload and PMU is on record", True
