"""What a run would do before it does it: images, boots, how long, and why. Estimates say what they rest on."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import computed_field

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import COUNTED_LANE, LANES, LaneName
from kdyno.base.state import State
from kdyno.kernel import ccache, estimate
from kdyno.kernel.build import BuildPlan
from kdyno.kernel.built_kernels.plan import GivenPlan
from kdyno.kernel.images import records
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.measure.workload.lmbench import LmbenchWorkload
from kdyno.runs.checks import checks_left
from kdyno.runs.derive import PlannedTraining, boots_left, boots_to_do
from kdyno.runs.experiment.plan import PlannedBoot
from kdyno.runs.prepare import Plan, Plans, Prepared
from kdyno.runs.run_plan import RunPlan
from kdyno.store.store import Store

LINK_SECONDS = 10.0
"""What another layout takes, at most, on a 2-core machine."""
CHECK_SECONDS = 30.0
"""A guess: the 20 suites of Linux 6.12's that need nothing else took 21 to 34 s under TCG."""
LINK_SECONDS_FROM = "a guess: what a link takes on 2 cores, at most"
BUILD_SECONDS_FROM = "measured: three of four such builds here took no longer"
"""ccache makes builds short, and other work on the host makes some of them very long."""


Decision = Literal["build", "link", "cached", "shared"]


@dataclass(frozen=True)
class BuildForecast:
    """One variant's image."""

    variant: str
    key: str
    decision: Decision
    why: str
    seconds: float | None = 0.0
    """None: not even a guess is possible before it is configured."""
    seconds_from: str = ""
    """What the seconds rest on; empty where nothing is to be done."""
    guess: bool = False
    """The seconds were not measured here."""
    cached_objects: bool = False
    """ccache is there, and what it has of the objects makes it less: how much isn't known before."""
    kernel: str = ""
    """Version of its source: `6.12.117`."""
    config: str = ""
    """The base configuration."""


@dataclass(frozen=True)
class TrainingForecast:
    """One input that is made of boots before the images that take it."""

    use: str
    """What it is: `autofdo`."""
    variant: str
    """What is booted for it."""
    image: str
    """Its key."""
    tests: tuple[str, ...]
    boots: int
    left: int
    """Boots that are not on record yet."""


class Forecast(Frozen):
    """What is ahead; `kdyno plan --json` prints it."""

    run: str
    builds: tuple[BuildForecast, ...]
    boots: tuple[PlannedBoot, ...]
    """Those that are not on record yet, in order."""
    boots_done: int
    boot_seconds: float
    boot_seconds_from: str
    boot_guess: bool
    """The seconds were not measured here."""
    side_by_side: int
    trainings: tuple[TrainingForecast, ...] = ()
    """What is made of boots before builds, in order."""
    training_boots: int = 0
    """Those of trainings that come before the builds, one after the other."""
    training_seconds: float = 0.0
    training_guess: bool = False
    check_boots: int = 0
    """Those in which kernels run their own tests, one after the other."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def seconds(self) -> float | None:
        """Seconds in all; None if a build's time can't be told."""
        builds = [build.seconds for build in self.builds]
        if any(seconds is None for seconds in builds):
            return None
        return sum(s for s in builds if s) + self.seconds_of_boots

    @property
    def seconds_of_boots(self) -> float:
        checks = self.check_boots * CHECK_SECONDS
        return len(self.boots) * self.boot_seconds / self.side_by_side + self.training_seconds + checks

    @computed_field  # type: ignore[prop-decorator]
    @property
    def guessed(self) -> tuple[str, ...]:
        """Of what the time is a guess, at least in part; empty where all of it was measured here."""
        of = [build.decision for build in self.builds if build.guess]
        boots = (self.boots and self.boot_guess) or (self.training_boots and self.training_guess)
        return tuple(dict.fromkeys([*of, *(["boot"] if boots or self.check_boots else [])]))


def forecast(prepared: Prepared, plan: RunPlan, state: State, store: Store) -> Forecast:
    """Look at the cache and at earlier runs; build and boot nothing."""
    about = prepared.about
    progress = plan.progress(store)
    boots = tuple(plan.boots_of(progress.left))
    left = boots_left(prepared.trainings, store)
    workload = prepared.experiment.workload
    boot_seconds, rests_on, boot_guess = _boot_time(about.lane, about.facts.get("pmu_events"), workload, store)
    training = [
        (boots, *_boot_time(COUNTED_LANE.name, events, LmbenchWorkload(), store)) for events, boots in left.items()
    ]
    return Forecast(
        run=plan.id,
        builds=forecast_builds(prepared.plans, state, prepared.trainings),
        boots=boots,
        boots_done=len(plan.boots_of(progress.ended)),
        boot_seconds=boot_seconds,
        boot_seconds_from=rests_on,
        boot_guess=boot_guess,
        side_by_side=about.parallel,
        trainings=tuple(_training(planned, store) for planned in prepared.trainings),
        training_boots=sum(left.values()),
        training_seconds=sum(boots * seconds for boots, seconds, _, _ in training),
        training_guess=any(guess for boots, _, _, guess in training if boots),
        check_boots=checks_left(prepared, store),
    )


def forecast_builds(plans: Plans, state: State, trainings: Sequence[PlannedTraining] = ()) -> tuple[BuildForecast, ...]:
    """Look at the cache, for each image of each variant, and for those that are only booted to train on them."""
    own = {plan.key for layouts in plans.values() for plan in layouts}
    only_booted = {
        planned.plan.key: (planned.training.variant, planned.plan)
        for planned in trainings
        if planned.plan.key not in own
    }
    named = [(_named(variant, plan), plan) for variant, layouts in plans.items() for plan in layouts]
    first: dict[str, str] = {}
    compiled: dict[str, tuple[str, BuildPlan]] = {}
    builds = []
    every: list[tuple[str, Plan]] = [*only_booted.values(), *named]
    for variant, plan in every:
        if plan.key in first:
            why = f"same image as {first[plan.key]}: they differ only in how they are started"
            builds.append(_of(plan, variant, "shared", why))
            continue
        first[plan.key] = variant
        if isinstance(plan, GivenPlan):
            builds.append(_of(plan, variant, "cached", "built by somebody else"))
        elif plan.cached:
            builds.append(_of(plan, variant, "cached", "built before"))
        elif plan.objects_key in compiled:
            by, before = compiled[plan.objects_key]
            others = "" if plan.delegation == before.delegation else ", without those that its delegation makes anew"
            why = f"another link of the objects of {by}{others}"
            builds.append(_of(plan, variant, "link", why, (LINK_SECONDS, LINK_SECONDS_FROM, True)))
        else:
            compiled[plan.objects_key] = variant, plan
            why = "no image of this source, configuration, recipe and compiler yet"
            builds.append(_of(plan, variant, "build", why, _build_time(plan, state)))
    return tuple(builds)


def _of(
    plan: Plan, variant: str, decision: Decision, why: str, time: tuple[float | None, str, bool] = (0.0, "", False)
) -> BuildForecast:
    """`time` is seconds, what they rest on, and whether they are a guess."""
    helped = decision == "build" and ccache.is_installed()
    return BuildForecast(
        variant, plan.key, decision, why, *time, helped, kernel=plan.source.version, config=plan.base.spec
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


def _named(variant: str, plan: Plan) -> str:
    return variant if plan.recipe.layout_seed is None else f"{variant}, layout {plan.recipe.layout_seed}"


def _build_time(plan: BuildPlan, state: State) -> tuple[float | None, str, bool]:
    """Seconds, what they rest on, whether they are a guess. ccache may make it less."""
    seconds = _seconds_of_likes(plan, state)
    if seconds:
        return float(np.quantile(seconds, 0.75, method="higher")), BUILD_SECONDS_FROM, False
    files = estimate.files_of(plan)
    if files is None:
        return None, f"unknown: only configuring tells how much {plan.base.spec} compiles", False
    cores = os.cpu_count() or 1
    why = f"a guess: {files:,} files to compile on {cores} {'core' if cores == 1 else 'cores'}"
    return estimate.seconds(files, plan.toolchain.identity.family, cores), why, True


def _seconds_of_likes(plan: BuildPlan, state: State) -> list[float]:
    """What images of the same base and compiler took here."""
    base, family = plan.base.spec, plan.toolchain.identity.family
    return [
        record.build_seconds for record in records(state) if record.base == base and record.toolchain.family == family
    ]


def _boot_time(lane: LaneName, events: str | None, workload: WorkloadSettings, store: Store) -> tuple[float, str, bool]:
    """The same of a boot, from the newest run in the same lane with the same events and the same type of workload.

    The emulated PMU makes a boot take twice as long.
    """
    if on_record := store.boot_seconds(lane, events, workload.type):
        run_id, seconds = on_record
        return statistics.median(seconds), f"median of run {run_id}", False
    guess = LANES[lane].first_boot_seconds + workload.seconds_beyond_tests()
    return guess, "a guess: no boot in this lane is on record", True
