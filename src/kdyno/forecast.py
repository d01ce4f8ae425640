"""What a run would do before it does it: images, boots, how long, and why. Estimates say what they rest on."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import ValidationError

from kdyno.experiment.plan import PlannedBoot, plan_boots
from kdyno.kernel.build import BuildPlan
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.images import RECORD
from kdyno.line import Plans, Prepared
from kdyno.machine.base import Description
from kdyno.state import State
from kdyno.store.store import Store

FIRST_BOOT_SECONDS = {"model": 6.0, "wall": 20.0}
"""Before a lane has any boot on record: what one took on a 2-core machine; a guess elsewhere."""
BOOTS_LOOKED_AT = 50
LINK_SECONDS = 10.0
"""What another layout takes, at most, on a 2-core machine."""


@dataclass(frozen=True)
class BuildForecast:
    """One variant's image."""

    variant: str
    key: str
    decision: Literal["build", "link", "cached", "shared"]
    why: str
    seconds: float | None
    """None: nothing like it was built here yet."""


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
    side_by_side: int

    @property
    def seconds(self) -> float | None:
        """Seconds in all; None if a build's time can't be told."""
        builds = [build.seconds for build in self.builds]
        if any(seconds is None for seconds in builds):
            return None
        return sum(s for s in builds if s) + len(self.boots) * self.boot_seconds / self.side_by_side

    def as_data(self) -> dict[str, Any]:
        return asdict(self) | {"seconds": self.seconds}


def forecast(prepared: Prepared, run_id: str, state: State, store: Store) -> Forecast:
    """Look at the cache and at earlier runs; build and boot nothing."""
    experiment, about = prepared.experiment, prepared.about
    progress = store.progress(run_id)
    blocks = store.stopped_at(run_id) or experiment.blocks
    planned = [boot for boot in plan_boots(experiment) if boot.block < blocks]
    left = tuple(boot for boot in planned if (boot.variant, boot.block) not in progress.finished)
    seconds, rests_on = _boot_seconds(about, store)
    return Forecast(
        run=run_id,
        builds=_builds(prepared.plans, state),
        boots=left,
        boots_done=len(planned) - len(left),
        boot_seconds=seconds,
        boot_seconds_from=rests_on,
        side_by_side=about.parallel,
    )


def _builds(plans: Plans, state: State) -> tuple[BuildForecast, ...]:
    first: dict[str, str] = {}
    compiled: dict[str, str] = {}
    builds = []
    for variant, plan in ((_named(variant, plan), plan) for variant, layouts in plans.items() for plan in layouts):
        if plan.key in first:
            why = f"same image as {first[plan.key]}: they differ only in how they are started"
            builds.append(BuildForecast(variant, plan.key, "shared", why, 0.0))
            continue
        first[plan.key] = variant
        if plan.cached:
            builds.append(BuildForecast(variant, plan.key, "cached", "built before", 0.0))
        elif plan.objects_key in compiled:
            why = f"another link of the objects of {compiled[plan.objects_key]}"
            builds.append(BuildForecast(variant, plan.key, "link", why, LINK_SECONDS))
        else:
            compiled[plan.objects_key] = variant
            why = "no image of this source, configuration, recipe and compiler yet"
            builds.append(BuildForecast(variant, plan.key, "build", why, _build_seconds(plan, state)))
    return tuple(builds)


def _named(variant: str, plan: BuildPlan) -> str:
    return variant if plan.recipe.layout is None else f"{variant}, layout {plan.recipe.layout}"


def _build_seconds(plan: BuildPlan, state: State) -> float | None:
    """What images of the same base and compiler took here, at most; ccache may make it less."""
    seconds = []
    for path in state.images.glob(f"[!.]*/{RECORD}"):
        try:
            record = ImageRecord.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue
        if record.base == plan.base.spec and record.toolchain.family == plan.toolchain.identity.family:
            seconds.append(record.build_seconds)
    return max(seconds, default=None)


def _boot_seconds(about: Description, store: Store) -> tuple[float, str]:
    """Of the newest run in the same lane and with the same events: the emulated PMU makes a boot take twice as long."""
    lane, events = about.lane, about.facts.get("pmu_events")
    for run in store.runs():
        if run.lane == lane and run.done and store.run(run.id).machine.get("pmu_events") == events:
            seconds = [boot.seconds for boot in store.boots(run.id)[-BOOTS_LOOKED_AT:] if boot.status == "ok"]
            if seconds:
                return statistics.median(seconds), f"median of run {run.id}"
    return FIRST_BOOT_SECONDS[lane], "a guess: no boot in this lane is on record"
