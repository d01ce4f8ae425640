"""The bench of a search: builds and boots recipes beside the baseline by ordinary runs, and reads their gains."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kdyno.base.errors import KdynoError, UserError
from kdyno.base.talk import Talk
from kdyno.base.text import clean, format_list
from kdyno.judge.verdicts.checks import checks_of
from kdyno.judge.verdicts.values import table
from kdyno.kernel.image import Image
from kdyno.kernel.images import configuration_of, directory, is_built
from kdyno.kernel.make import BuildFailed
from kdyno.kernel.source_trees import remove_tree
from kdyno.runs.experiment.models import MOST_SHORT_NAME, Experiment
from kdyno.runs.experiment.space import Objective, RungSpec
from kdyno.runs.images import build_images
from kdyno.runs.prepare import Prepared, prepare
from kdyno.runs.run import run_experiment
from kdyno.runs.session import Session
from kdyno.runs.train import make_inputs
from kdyno.store.upkeep.gc import take_away
from kdyno.tune.bisect.bench import TrialTalk
from kdyno.tune.boots import BootsLost, HostDisturbed, disturbance
from kdyno.tune.space.gains import NoGain, speed_gain
from kdyno.tune.space.outcome import Measured, Stage, TrialOutcome
from kdyno.tune.space.read import SpaceFile
from kdyno.tune.space.space import Point

SUFFIX = "-search"
GB = 1_000_000_000
FIRST_BLOCKS = 2
"""Boots of a recipe on the first rung, unless the space says."""


class BaselineFails(UserError):
    message = "the baseline {name} {reason}"
    hint = "a search compares recipes with it: choose a baseline that `kdyno run` measures"


def rungs_of(experiment: Experiment, rungs: tuple[RungSpec, ...]) -> tuple[RungSpec, ...]:
    """Return the rungs of a search, or those of a space that says nothing of them."""
    if rungs:
        return rungs
    first = max(FIRST_BLOCKS, experiment.layouts)
    last = max(experiment.blocks, first)
    return (RungSpec(blocks=first), RungSpec(blocks=last)) if last > first else (RungSpec(blocks=first),)


def experiment_on(experiment: Experiment, rung: RungSpec) -> Experiment:
    """Return an experiment as it is measured on a rung. Pure."""
    machine = experiment.machine
    if rung.lane is not None and rung.lane != machine.lane:
        machine = machine.model_copy(update={"lane": rung.lane, "pmu": None})
    workload = experiment.workload.select_tests(rung.tests) if rung.tests else experiment.workload
    return experiment.model_copy(
        update={
            "name": f"{experiment.name[: MOST_SHORT_NAME - len(SUFFIX)]}{SUFFIX}",
            "machine": machine,
            "workload": workload,
            "blocks": max(rung.blocks, experiment.layouts),
            "auto": False,
            "pilot": "",
            "confirm": None,
            "judge": experiment.judge.model_copy(update={"looks": 1}),
        }
    )


def baseline_alone(file: SpaceFile, rung: RungSpec) -> Experiment:
    """Return the experiment of the baseline alone, on a rung. Pure."""
    experiment = experiment_on(file.experiment, rung)
    return experiment.model_copy(update={"variants": {experiment.baseline: experiment.variants[experiment.baseline]}})


@dataclass(frozen=True)
class _Booted:
    """The run of a recipe: the gain in speed, or where and why the recipe failed."""

    run: str
    speed: Measured | None = None
    failed: Stage | None = None
    reason: str = ""


@dataclass
class SpaceBench:
    """Measures the recipes of a space."""

    file: SpaceFile
    session: Session
    rungs: tuple[RungSpec, ...]
    baseline_image: Image | None = None
    clock: Callable[[], float] = time.monotonic
    images_by_age: list[str] = field(default_factory=list)
    """Keys of images that this search has built, the oldest first."""
    kept_images: set[str] = field(default_factory=set)
    """Keys of images that are not removed, however large all are."""

    def __post_init__(self) -> None:
        talk = self.session.talk
        self._building = replace(self.session, talk=TrialTalk(talk))
        self._booting = replace(self.session, talk=Talk(quiet=True))

    @property
    def _baseline(self) -> str:
        return self.file.experiment.baseline

    def measure_baseline(self) -> Mapping[str, str]:
        """Build the baseline and boot it alone, so that one that fails is named before anything else is built.

        Return the values of its Kconfig symbols. Raises BaselineFails and BootsLost.
        """
        experiment = baseline_alone(self.file, self.rungs[0])
        try:
            prepared = prepare(experiment, self.session.state, self._building.talk)
            images = self._build(prepared)
        except BuildFailed as error:
            raise BaselineFails(name=self._baseline, reason=_reason(error)) from error
        self._boot(experiment, self._baseline)
        if not images:
            return {}
        self.baseline_image = images[0]
        self.kept_images |= {image.record.key for image in images}
        return configuration_of(images[0])

    def measure(self, point: Point, rung: int) -> TrialOutcome:
        """Build and boot a recipe beside the baseline; once more if other work on the host disturbed all boots.

        Raises BaselineFails, BootsLost, HostDisturbed and what runs raise.
        """
        outcome = TrialOutcome(values=self.file.space.values(point), rung=rung)
        try:
            experiment = experiment_on(self.file.experiment_of(point), self.rungs[rung])
            prepared = prepare(experiment, self.session.state, self._building.talk)
        except UserError as error:
            return _failed(outcome, "recipe", _reason(error))
        begin = self.clock()
        is_cached = all(plan.cached for plans in prepared.plans.values() for plan in plans)
        try:
            images = self._build(prepared)
        except UserError as error:
            return _failed(outcome, "build", _reason(error), build_seconds=self.clock() - begin)
        built = self.clock()
        seconds = 0.0 if is_cached else built - begin
        outcome = outcome.model_copy(
            update={"build_seconds": seconds, "image": images[0].record.key if images else None}
        )
        name = self.file.name(point)
        try:
            booted = self._measure_speed(experiment, name, again=False)
        except HostDisturbed:
            booted = self._measure_speed(experiment, name, again=True)
        outcome = outcome.model_copy(update={"run": booted.run, "boot_seconds": self.clock() - built})
        if booted.failed:
            return _failed(outcome, booted.failed, booted.reason)
        space = self.file.space
        has_own_objects = space.objects_of(point) != space.objects_of(space.baseline)
        sizes = self._sizes(images, has_own_objects=has_own_objects)
        return outcome.model_copy(update={"measured": {"speed": booted.speed, **sizes}})

    def _measure_speed(self, experiment: Experiment, trial: str, *, again: bool) -> _Booted:
        """Carry out a run, or one more, of the tried recipe, which is the variant `trial`, beside the baseline.

        Raises BaselineFails, BootsLost, HostDisturbed and what runs raise.
        """
        run_id, failed, reason = self._boot(experiment, trial, again=again)
        if failed:
            return _Booted(run_id, failed=failed, reason=reason)
        boots = self.session.store.boots(run_id)
        if reasons := [boot.reason for boot in boots if boot.variant == trial and boot.status == "failed"]:
            return _Booted(run_id, failed="boot", reason=clean(reasons[0]))
        benchmarks = self.session.store.benchmarks(run_id)
        try:
            return _Booted(run_id, speed_gain(table(boots, benchmarks), benchmarks, self._baseline, trial))
        except NoGain as problem:
            if disturbed := disturbance(boots, problem.variant, problem.benchmark):
                raise HostDisturbed(name=problem.variant, benchmark=problem.benchmark, reason=disturbed) from None
            if problem.variant == self._baseline:
                raise BaselineFails(name=self._baseline, reason=f"has no value of {problem.benchmark}") from None
            return _Booted(run_id, failed="boot", reason=f"it has no value of {problem.benchmark}")

    def _sizes(self, images: list[Image], *, has_own_objects: bool) -> dict[Objective, Measured]:
        """Return the gains in size and in the time of a build, where kernels are built. A recipe with the baseline's
        objects takes as long to build, though it was only linked.
        """
        if not images or self.baseline_image is None:
            return {}
        old, new = self.baseline_image.record, images[0].record
        sizes: dict[Objective, Measured] = {"text": Measured(value=math.log(old.sizes.text / new.sizes.text))}
        if not has_own_objects:
            sizes["build"] = Measured(value=0.0)
        elif old.build_seconds > 0 and new.build_seconds > 0:
            sizes["build"] = Measured(value=math.log(old.build_seconds / new.build_seconds))
        return sizes

    def _build(self, prepared: Prepared) -> list[Image]:
        """Build the images of an experiment; return those of the last variant."""
        if not prepared.plans:
            return []
        missing = [
            plan.key
            for plans in prepared.plans.values()
            for plan in plans
            if not is_built(plan.key, self.session.state)
        ]
        if missing:
            self._make_room()
        make_inputs(prepared.trainings, self._building)
        images = build_images(prepared.plans, self.session.state, self._building.talk)
        self.images_by_age += missing
        return list(images[list(prepared.plans)[-1]])

    def _boot(self, experiment: Experiment, trial: str, *, again: bool = False) -> tuple[str, Stage | None, str]:
        """Carry out a run, or one more; return its id, and where and why the variant `trial` failed."""
        done = run_experiment(experiment, self._booting, again=again)
        if done.outcome.lost:
            names = format_list(list(done.outcome.lost))
            raise BootsLost(boots=names, reason=clean(next(iter(done.outcome.lost.values()))))
        given_up = done.outcome.given_up
        if self._baseline in given_up:
            raise BaselineFails(name=self._baseline, reason=f"doesn't boot: {clean(given_up[self._baseline])}")
        run = self.session.store.run(done.run_id)
        broken = {
            c.variant: c.in_words() for c in checks_of(self.session.store, run, self.session.artefacts) if not c.passed
        }
        if self._baseline in broken:
            raise BaselineFails(name=self._baseline, reason=f"fails its own tests: {broken[self._baseline]}")
        if trial in given_up:
            return done.run_id, "boot", clean(given_up[trial])
        if trial in broken:
            return done.run_id, "check", broken[trial]
        return done.run_id, None, ""

    def _make_room(self) -> None:
        """Remove the oldest images of this search, if all take more than it may have."""
        limit = self.file.search.images_gb
        if limit is None:
            return
        sizes = {key: self._size(key) for key in self.images_by_age}
        going = oldest_beyond(sizes, self.kept_images, limit * GB)
        for path in take_away([directory(key, self.session.state) for key in going], self.session.state):
            remove_tree(path)
        self.images_by_age = [key for key in self.images_by_age if key not in going]

    def _size(self, key: str) -> int:
        place = directory(key, self.session.state)
        return sum(file.stat().st_size for file in place.iterdir()) if place.is_dir() else 0


def oldest_beyond(sizes: Mapping[str, int], kept: Iterable[str], most: float) -> list[str]:
    """Return the images to remove, the oldest first, until the others take at most so many bytes. Pure.

    `sizes` has bytes by key, in the order of age; those that are `kept` are never removed.
    """
    total, going, stays = sum(sizes.values()), list[str](), set(kept)
    for key, size in sizes.items():
        if total <= most:
            break
        if key not in stays:
            going.append(key)
            total -= size
    return going


def _failed(outcome: TrialOutcome, stage: Stage, reason: str, build_seconds: float = 0.0) -> TrialOutcome:
    update = {"failed": stage, "reason": reason, **({"build_seconds": build_seconds} if build_seconds else {})}
    return outcome.model_copy(update=update)


def _reason(error: KdynoError) -> str:
    return clean(f"doesn't build: {error.facts['error']}" if isinstance(error, BuildFailed) else str(error))
