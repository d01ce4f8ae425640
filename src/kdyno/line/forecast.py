"""What a run would do before it does it: images, boots, how long, and why. Estimates say what they rest on."""

from __future__ import annotations

import os
import statistics
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import ValidationError

from kdyno.experiment.plan import PlannedBoot, plan_boots
from kdyno.kernel import estimate
from kdyno.kernel.build import BuildPlan
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.images import RECORD
from kdyno.line.prepare import Plans, Prepared
from kdyno.machine.base import Description
from kdyno.state import State
from kdyno.store.giving_up import given_up
from kdyno.store.store import Store

FIRST_BOOT_SECONDS = {"model": 6.0, "wall": 20.0}
"""Before a lane has any boot on record: what one took on a 2-core machine; a guess elsewhere."""
BOOTS_LOOKED_AT = 50
LINK_SECONDS = 10.0
"""What another layout takes, at most, on a 2-core machine."""
LINK_SECONDS_FROM = "a guess: what a link takes on 2 cores, at most"


@dataclass(frozen=True)
class BuildForecast:
    """One variant's image."""

    variant: str
    key: str
    decision: Literal["build", "link", "cached", "shared"]
    why: str
    seconds: float | None = 0.0
    """None: not even a guess is possible before it is configured."""
    seconds_from: str = ""
    """What the seconds rest on; empty where nothing is to be done."""
    guess: bool = False
    """The seconds were not measured here."""


@dataclass(frozen=True)
class Forecast:
    """What is ahead."""

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

    @property
    def seconds(self) -> float | None:
        """Seconds in all; None if a build's time can't be told."""
        builds = [build.seconds for build in self.builds]
        if any(seconds is None for seconds in builds):
            return None
        return sum(s for s in builds if s) + self.seconds_of_boots

    @property
    def seconds_of_boots(self) -> float:
        return len(self.boots) * self.boot_seconds / self.side_by_side

    @property
    def guessed(self) -> tuple[str, ...]:
        """Of what the time is a guess, at least in part; empty where all of it was measured here."""
        of = [build.decision for build in self.builds if build.guess]
        return tuple(dict.fromkeys([*of, *(["boot"] if self.boots and self.boot_guess else [])]))

    def as_data(self) -> dict[str, Any]:
        return asdict(self) | {"seconds": self.seconds, "guessed": self.guessed}


def forecast(prepared: Prepared, run_id: str, state: State, store: Store) -> Forecast:
    """Look at the cache and at earlier runs; build and boot nothing."""
    experiment, about = prepared.experiment, prepared.about
    progress = store.progress(run_id)
    blocks = store.stopped_at(run_id) or experiment.blocks
    planned = [boot for boot in plan_boots(experiment) if boot.block < blocks]
    left = [boot for boot in planned if (boot.variant, boot.block) not in progress.finished]
    hopeless = given_up(store.boots(run_id))
    boot_seconds, rests_on, boot_guess = _boot_time(about, store)
    return Forecast(
        run=run_id,
        builds=forecast_builds(prepared.plans, state),
        boots=tuple(boot for boot in left if boot.variant not in hopeless),
        boots_done=len(planned) - len(left),
        boot_seconds=boot_seconds,
        boot_seconds_from=rests_on,
        boot_guess=boot_guess,
        side_by_side=about.parallel,
    )


def forecast_builds(plans: Plans, state: State) -> tuple[BuildForecast, ...]:
    """Look at the cache, for each image of each variant."""
    first: dict[str, str] = {}
    compiled: dict[str, str] = {}
    builds = []
    for variant, plan in ((_named(variant, plan), plan) for variant, layouts in plans.items() for plan in layouts):
        if plan.key in first:
            why = f"same image as {first[plan.key]}: they differ only in how they are started"
            builds.append(BuildForecast(variant, plan.key, "shared", why))
            continue
        first[plan.key] = variant
        if plan.cached:
            builds.append(BuildForecast(variant, plan.key, "cached", "built before"))
        elif plan.objects_key in compiled:
            why = f"another link of the objects of {compiled[plan.objects_key]}"
            builds.append(BuildForecast(variant, plan.key, "link", why, LINK_SECONDS, LINK_SECONDS_FROM, guess=True))
        else:
            compiled[plan.objects_key] = variant
            why = "no image of this source, configuration, recipe and compiler yet"
            builds.append(BuildForecast(variant, plan.key, "build", why, *_build_time(plan, state)))
    return tuple(builds)


def _named(variant: str, plan: BuildPlan) -> str:
    return variant if plan.recipe.layout is None else f"{variant}, layout {plan.recipe.layout}"


def _build_time(plan: BuildPlan, state: State) -> tuple[float | None, str, bool]:
    """Seconds, what they rest on, whether they are a guess. ccache may make it less."""
    seconds = _seconds_of_likes(plan, state)
    if seconds:
        return max(seconds), "measured: the slowest such build here", False
    files = estimate.files_of(plan)
    if files is None:
        return None, f"unknown: only configuring tells how much {plan.base.spec} compiles", False
    cores = os.cpu_count() or 1
    why = f"a guess: {files:,} files to compile on {cores} {'core' if cores == 1 else 'cores'}"
    return estimate.seconds(files, plan.toolchain.identity.family, cores), why, True


def _seconds_of_likes(plan: BuildPlan, state: State) -> list[float]:
    """What images of the same base and compiler took here."""
    seconds = []
    for path in state.images.glob(f"[!.]*/{RECORD}"):
        try:
            record = ImageRecord.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue
        if record.base == plan.base.spec and record.toolchain.family == plan.toolchain.identity.family:
            seconds.append(record.build_seconds)
    return seconds


def _boot_time(about: Description, store: Store) -> tuple[float, str, bool]:
    """The same of a boot, from the newest run in the same lane and with the same events.

    The emulated PMU makes a boot take twice as long.
    """
    lane, events = about.lane, about.facts.get("pmu_events")
    for run in store.runs():
        if run.lane == lane and run.done and store.run(run.id).machine.get("pmu_events") == events:
            seconds = [boot.seconds for boot in store.boots(run.id)[-BOOTS_LOOKED_AT:] if boot.status == "ok"]
            if seconds:
                return statistics.median(seconds), f"median of run {run.id}", False
    return FIRST_BOOT_SECONDS[lane], "a guess: no boot in this lane is on record", True
