"""The bench of a bisection: builds and boots kernels of a range by ordinary runs, and reads their differences."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kdyno.base.errors import KdynoError, Unbuildable, UserError
from kdyno.base.frozen import digest
from kdyno.base.lanes import LANES
from kdyno.base.talk import Talk
from kdyno.base.text import clean, format_list
from kdyno.boot.platforms import KernelNotStartable
from kdyno.judge.verdicts.regression import require_known
from kdyno.kernel.built_kernels.adopt import ConfigMissing
from kdyno.kernel.built_kernels.header import NotABootableKernel
from kdyno.kernel.built_kernels.modules import ModuleMissing, ModuleUnfit
from kdyno.kernel.built_kernels.packed import NotUnpackable
from kdyno.kernel.built_kernels.plan import GivenPlan
from kdyno.kernel.image import Image
from kdyno.kernel.images import records
from kdyno.kernel.knobs import ContradictoryAsks
from kdyno.kernel.knobs.lto import LtoNeedsClang
from kdyno.kernel.make import BuildFailed
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source_trees import LinkLeadsOut, NotPlain
from kdyno.kernel.unpack import SourceTooLarge, TreeNotClean
from kdyno.kernel.version import NotAKernelTree
from kdyno.runs.experiment.models import MOST_SHORT_NAME, Experiment
from kdyno.runs.experiment.plan import derived_seed, layout_seed
from kdyno.runs.forecast import boot_time
from kdyno.runs.given import KernelUnfitForWorkload
from kdyno.runs.images import build_images
from kdyno.runs.prepare import prepare
from kdyno.runs.run import run_experiment
from kdyno.runs.session import Session
from kdyno.runs.train import make_inputs
from kdyno.store.progress import GIVEN_UP_AFTER
from kdyno.tune.bisect.build_times import BuildTimes
from kdyno.tune.bisect.choice import TrialCosts
from kdyno.tune.bisect.code import code_digest
from kdyno.tune.bisect.differences import NoValue, config_differences, differences, mean_by_block
from kdyno.tune.bisect.evidence import (
    Check,
    Differences,
    Measure,
    Outcome,
    Revert,
    SameCode,
    Trial,
    Untestable,
)
from kdyno.tune.bisect.packages import PackageRange
from kdyno.tune.bisect.ranges import KernelRange
from kdyno.tune.boots import BootsLost, HostDisturbed, disturbance

SHORTEST_BLOCK = 0.1
"""Seconds; a replayed boot takes none."""
UNTESTABLE = (
    *(Unbuildable, NotAKernelTree, LinkLeadsOut, NotPlain, SourceTooLarge, TreeNotClean),
    *(ContradictoryAsks, LtoNeedsClang),
    *(NotABootableKernel, ConfigMissing, ModuleMissing, ModuleUnfit, NotUnpackable),
    *(KernelUnfitForWorkload, KernelNotStartable),
)
"""Errors of one kernel of a range: its source is unfit, its mixture of two recipes, or its package."""
FORECASTS = ("to do: ", "time: ")
"""How the lines of a run's forecast begin."""


class GoodEndUntestable(UserError):
    message = "the good end {name} can't be tested: {reason}"
    hint = "begin with another good end, or change the configuration until `kdyno ab` measures it"


@dataclass(frozen=True)
class Trialled:
    """The outcome of a trial, and the run that has its boots."""

    outcome: Outcome
    run: str | None = None
    code: str | None = None
    """The digest of the code of a state that was built."""


class TrialTalk(Talk):
    """Prints each line once, since every trial would repeat the notes of its machine, and no forecasts of single runs:
    that of the bisection replaces them.
    """

    def __init__(self, talk: Talk) -> None:
        super().__init__(talk.quiet)
        self.bars = talk.bars
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        if text not in self._said and not text.startswith(FORECASTS):
            self._said.add(text)
            super().say(text)


@dataclass
class BisectBench:
    """Measures the kernels of a range."""

    kernels: KernelRange
    template: Experiment
    """The experiment with the recipe that all kernels share, as its only variant."""
    benchmarks: tuple[str, ...]
    """Names of benchmarks or tests whose mean counts; empty: all."""
    session: Session
    layouts: int
    """The most link orders of a kernel; 0: one image of each."""
    is_better_sought: bool = False
    """Whether the search is for what made the benchmarks better."""
    code_by_state: dict[int, str] = field(default_factory=dict)
    images: dict[int, Image] = field(default_factory=dict)
    most_layouts: int = field(init=False)
    """The most link orders; 0 where kernels have none: a built kernel, a machine without images."""

    def __post_init__(self) -> None:
        self.session = replace(self.session, talk=TrialTalk(self.session.talk))
        if self.benchmarks:
            require_known(self.benchmarks, self.template.workload.benchmark_names(), "--benchmark")
        self.most_layouts = 0
        self.prepared = prepare(self._experiment((0,), 1, 0), self.session.state, self.session.talk)
        self.prepared.require_cpu()
        self.times = BuildTimes(self.kernels, self.prepared, self.session.state)
        is_given = any(isinstance(plan, GivenPlan) for plans in self.prepared.plans.values() for plan in plans)
        if self.prepared.about.needs_images and not is_given:
            self.most_layouts = self.layouts

    @property
    def base(self) -> Recipe:
        """The recipe that all kernels share."""
        return self.template.variants[self.template.baseline]

    def _experiment(self, states: Sequence[int], blocks: int, orders: int) -> Experiment:
        variants = {self.kernels.name(state): self.kernels.recipe(self.base, state) for state in states}
        return self._experiment_of(variants, blocks, orders)

    def _experiment_of(self, variants: Mapping[str, Recipe], blocks: int, orders: int) -> Experiment:
        """Return the experiment with these variants, the first of which is the baseline; blocks take the link orders in
        turn.
        """
        return self.template.model_copy(
            update={
                "name": f"bisect-{self.template.name}"[:MOST_SHORT_NAME],
                "variants": dict(variants),
                "baseline": next(iter(variants)),
                "blocks": blocks,
                "layouts": orders,
                "auto": False,
            }
        )

    def _check_experiment(self, trial: Check, blocks: int) -> Experiment:
        """Return the experiment of a check, which shares neither boots nor link orders with the search."""
        experiment = self._experiment((trial.before, trial.after), blocks, trial.orders)
        seed = derived_seed(experiment.seed, "bisect check")
        if not experiment.layouts:
            return experiment.model_copy(update={"seed": seed})
        variants = {
            name: recipe.model_copy(update={"layout_seed": derived_seed(seed, f"layouts {recipe.layout_seed}")})
            for name, recipe in experiment.variants.items()
        }
        return experiment.model_copy(update={"seed": seed, "variants": variants})

    # Costs.

    def costs(self) -> TrialCosts:
        """Return the costs of a trial on this host, and the states that are built already."""
        about, workload = self.prepared.about, self.template.workload
        seconds, _, _ = boot_time(about.lane, about.pmu.events if about.pmu else None, workload, self.session.store)
        per_block = 1 if LANES[about.lane].is_repeatable else 2  # the boots of the good end are on record
        block = max(SHORTEST_BLOCK, per_block * seconds / about.parallel)
        return TrialCosts(build=self.times.build, block=block, link=self.times.link, built=self._built())

    def _built(self) -> frozenset[int]:
        """Return the states whose first image was built by an earlier command with the same recipe."""
        if not self.prepared.about.needs_images:
            return frozenset(range(self.kernels.steps + 1))
        base = self.base
        if self.most_layouts:
            base = base.model_copy(update={"layout_seed": layout_seed(base.layout_seed, 0)})
        return self.kernels.built(records(self.session.state), base, self.template.config)

    # Trials.

    def carry_out(self, trial: Trial) -> Trialled:
        """Build and boot what a trial requests. Raises BootsLost, GoodEndUntestable, and what runs raise."""
        if isinstance(trial, Check):
            return self._check(trial)
        if isinstance(trial, Revert):
            return self._revert(trial)
        if 0 not in self.images and self.prepared.about.needs_images:
            try:
                self._build(0, trial.orders)
            except Unbuildable as error:
                raise GoodEndUntestable(name=self.kernels.name(0), reason=error) from error
        try:
            self._build(trial.state, trial.orders)
        except UNTESTABLE as error:
            return Trialled(Untestable(_reason(error)))
        if (same := self._same_code(trial)) is not None:
            return Trialled(SameCode(same), code=self.code_by_state[trial.state])
        code = self.code_by_state.get(trial.state)
        trialled = self._run(self._experiment((0, trial.state), trial.blocks, trial.orders), code)
        if isinstance(trialled.outcome, Untestable) and trial.blocks < GIVEN_UP_AFTER:
            # One failed boot may be chance.
            return self._run(self._experiment((0, trial.state), GIVEN_UP_AFTER, trial.orders), code)
        return trialled

    def _build(self, state: int, orders: int) -> None:
        """Build a state in so many link orders, unless there are some, or the machine starts no images."""
        if state in self.images or not self.prepared.about.needs_images:
            return
        is_downloaded = isinstance(self.kernels, PackageRange) and state not in self._built()
        begun = time.monotonic()
        prepared = prepare(self._experiment((state,), max(1, orders), orders), self.session.state, self.session.talk)
        if is_downloaded:
            self.times.builds.append(time.monotonic() - begun)
        [plans] = prepared.plans.values()
        is_cached = [plan.cached for plan in plans]
        make_inputs(prepared.trainings, self.session)
        [images] = build_images(prepared.plans, self.session.state, self.session.talk).values()
        self.images[state] = image = images[0]
        if not any(is_cached):
            seconds, *links = [one.record.build_seconds for one in images]
            self.times.builds.append(seconds)
            self.times.links += links
        if code := code_digest(image.vmlinux):
            # The same image that is started with other words is another kernel of the range.
            self.code_by_state[state] = digest([code, self.kernels.recipe(self.base, state).words])

    def _same_code(self, trial: Measure) -> int | None:
        """Return a state with the code of the one that is to be measured; None if there is none."""
        code = self.code_by_state.get(trial.state)
        others = (state for state, other in sorted(self.code_by_state.items()) if other == code)
        return next((state for state in others if state != trial.state), None) if code else None

    def _check(self, trial: Check) -> Trialled:
        trialled = self._run(self._check_experiment(trial, trial.blocks), None, is_check=True)
        if isinstance(trialled.outcome, Untestable) and trialled.run and trial.blocks < GIVEN_UP_AFTER:
            # One failed boot may be chance here, too.
            return self._run(self._check_experiment(trial, GIVEN_UP_AFTER), None, is_check=True)
        return trialled

    def _revert(self, trial: Revert) -> Trialled:
        bad = self.kernels.steps
        try:
            without = self.kernels.recipe_without(self.base, trial.step, self.session.state.bisects)
            variants = {
                self.kernels.name(bad): self.kernels.recipe(self.base, bad),
                f"without-{self.kernels.name(trial.step)}": without,
            }
            experiment = self._experiment_of(variants, trial.blocks, trial.orders)
            seed = derived_seed(experiment.seed, "bisect check")
            return self._run(experiment.model_copy(update={"seed": seed}), None)
        except UserError as error:  # also of the patch itself: it may be empty, or move links
            return Trialled(Untestable(_reason(error)))

    def _run(self, experiment: Experiment, code: str | None, *, is_check: bool = False) -> Trialled:
        """Carry out a run of two kernels, once more if other work on the host disturbed all boots, and read their
        differences. Raises GoodEndUntestable except for a check.
        """
        try:
            return self._run_once(experiment, code, is_check=is_check, again=False)
        except HostDisturbed:
            return self._run_once(experiment, code, is_check=is_check, again=True)

    def _run_once(self, experiment: Experiment, code: str | None, *, is_check: bool, again: bool) -> Trialled:
        """Carry out a run of two kernels, or one more. Raises GoodEndUntestable, BootsLost and HostDisturbed."""
        first, second = experiment.variants
        try:
            done = run_experiment(experiment, self.session, again=again)
        except Unbuildable as error:  # in another link order: the first images of the search were built before
            return Trialled(Untestable(_reason(error)), code=code)
        if done.outcome.lost:
            names = format_list(list(done.outcome.lost))
            raise BootsLost(boots=names, reason=next(iter(done.outcome.lost.values())))
        for name in (first, second):
            if name in done.outcome.given_up:
                reason = f"never boots: {clean(done.outcome.given_up[name])}"
                return self._failed(name, reason, Trialled(Untestable(""), done.run_id, code), is_check)
        try:
            values = mean_by_block(self.benchmark_differences(done.run_id, first, second))
        except NoValue as problem:
            boots = self.session.store.boots(done.run_id)
            if disturbed := disturbance(boots, problem.variant, problem.benchmark):
                raise HostDisturbed(name=problem.variant, benchmark=problem.benchmark, reason=disturbed) from None
            reason = self._no_value_reason(done.run_id, problem)
            return self._failed(problem.variant, reason, Trialled(Untestable(""), done.run_id, code), is_check)
        outcome = Differences(tuple(values.values()), experiment.layouts, experiment.blocks, tuple(values))
        return Trialled(outcome, done.run_id, code)

    def _no_value_reason(self, run_id: str, problem: NoValue) -> str:
        """Return why a kernel has no value of a benchmark: its boots failed, or the benchmark did in them."""
        boots = [boot for boot in self.session.store.boots(run_id) if boot.variant == problem.variant]
        for boot in boots:
            if boot.status == "failed":
                return f"fails to boot: {clean(boot.reason)}"
            if reason := boot.broken.get(problem.benchmark):
                return f"can't measure {problem.benchmark}: {clean(reason)}"
        return f"has no value of {problem.benchmark}"

    def _failed(self, name: str, reason: str, trialled: Trialled, is_check: bool) -> Trialled:
        """Return that a kernel can't be measured. Raises GoodEndUntestable if it is the good end, except for a check,
        whose link orders differ.
        """
        if name == self.kernels.name(0) and not is_check:
            raise GoodEndUntestable(name=name, reason=f"it {reason}")
        return replace(trialled, outcome=Untestable(f"{name} {reason}"))

    def benchmark_differences(self, run_id: str, good: str, other: str) -> dict[str, dict[int, float]]:
        """Return how much worse the other kernel is, ln(other / good), by benchmark that counts and block.

        Raises NoValue, BenchmarksNotMeasured.
        """
        store, sign = self.session.store, -1 if self.is_better_sought else 1
        by_benchmark = differences(store.boots(run_id), store.benchmarks(run_id), (good, other), self.benchmarks)
        return {name: {block: sign * value for block, value in values.items()} for name, values in by_benchmark.items()}

    def config_differences(self, before: int, after: int) -> tuple[str, ...]:
        """Return the Kconfig symbols whose values differ between two built states, with both values."""
        if not (before in self.images and after in self.images):
            return ()
        return config_differences(self.images[before].config, self.images[after].config)

    def load_images(self, states: Sequence[int]) -> None:
        """Load the images of states that were built before, or build them again. Raises what builds raise."""
        for state in states:
            self._build(state, min(1, self.most_layouts))


def _reason(error: KdynoError) -> str:
    """Return why a kernel can't be built, without its name, which a reader knows."""
    return clean(f"doesn't build: {error.facts['error']}" if isinstance(error, BuildFailed) else str(error))
