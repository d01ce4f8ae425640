"""`kdyno confirm`: measures a variant of a run again, beside the baseline, with nothing that chose it.

The best of many measured kernels was partly lucky: its gain is too large on average (the winner's curse; Xu, Craiu and
Sun, Bayesian methods to overcome the winner's curse, Biostatistics 2011). New boots, seeds and link orders know nothing
of that luck, and other tests show whether the gain is of the load alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.boot.registry import open_machine
from kdyno.judge.stats.compare import Comparison, GeometricMean
from kdyno.judge.stats.verdict import BETTER, Verdict
from kdyno.judge.verdicts.assemble import assemble
from kdyno.judge.verdicts.model import RunReport
from kdyno.kernel.recipe import Recipe
from kdyno.runs.boots import Outcome
from kdyno.runs.experiment.models import MOST_SHORT_NAME, Experiment
from kdyno.runs.experiment.plan import derived_seed
from kdyno.runs.run import run_experiment
from kdyno.runs.session import Session
from kdyno.runs.silicon import recorded_experiment
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import RunRecord

_Judged = Comparison | GeometricMean
SUFFIX = "-confirmed"
LAYOUTS = 6
"""The number of link orders of each kernel, if the run sampled none."""


class BaselineNotConfirmed(UserError):
    message = "{variant} is the baseline of run {run}"
    hint = "name a variant that was compared with it: {known}"


class NotInRun(UserError):
    message = "run {run} has no variant {variant}"
    hint = "its variants: {known}"


class RunUnreadable(UserError):
    message = "the experiment of run {run} can't be read: it is of another version of kdyno"
    hint = "run the experiment's file again"


@dataclass(frozen=True)
class ConfirmRequest:
    """What is measured again, and how."""

    variant: str
    tests: tuple[str, ...] = ()
    """Other tests than the run's; empty: the same."""
    blocks: int | None = None
    layouts: int | None = None


class ConfirmedEffect(Frozen):
    """An effect in the run that promised it and in the new one. Effects are fractions of the baseline's value."""

    benchmark: str
    """The name; empty for the mean of speeds over all benchmarks."""
    promised: float | None
    """The effect in the run; None if it did not measure this benchmark."""
    found: float | None
    """The effect in the new run, with the ends of its interval."""
    low: float | None = None
    high: float | None = None
    promised_verdict: Verdict | None = None
    verdict: Verdict | None = None
    """The verdict of the new run."""


class ConfirmedWinner(Frozen):
    """A variant, measured again. `kdyno confirm --json` prints it."""

    variant: str
    baseline: str
    run: str
    """The run that promised the effects."""
    confirmation: str
    """The new run."""
    blocks: int
    layouts: int
    """Link orders of each kernel; 0: those of the run."""
    mean: ConfirmedEffect | None
    """None if the new run has no mean."""
    effects: tuple[ConfirmedEffect, ...]
    sentence: str

    @property
    def is_confirmed(self) -> bool:
        """Return whether the new run has the verdict of the run on the mean; with other benchmarks, whether the variant
        is better there.
        """
        if self.mean is None or self.mean.verdict in (None, "undecided"):
            return False
        if self.mean.promised is None:
            return self.mean.verdict in BETTER
        return self.mean.verdict == self.mean.promised_verdict

    @property
    def is_better(self) -> bool:
        """Return whether the variant is better in the new run, in the mean over its benchmarks."""
        return self.mean is not None and self.mean.verdict in BETTER


def confirm_variant(run: RunRecord, request: ConfirmRequest, session: Session) -> tuple[ConfirmedWinner, Outcome]:
    """Measure a variant of a run again. The same call continues where it was interrupted. Raises KdynoError."""
    experiment = fresh_experiment(run, request)
    artefacts = Artefacts(session.state.artefacts)
    promised = assemble(session.store, run.id, artefacts, analysed=False)
    done = run_experiment(experiment, session, again=False)
    found = assemble(session.store, done.run_id, artefacts, analysed=False)
    return beside(promised, found, request, experiment), done.outcome


def fresh_experiment(run: RunRecord, request: ConfirmRequest) -> Experiment:
    """Return the experiment of the baseline and the variant, with seeds and link orders that the run did not have.

    Raises RunUnreadable, NotInRun and BaselineNotConfirmed, and what opening the machine raises.
    """
    experiment = recorded_experiment(run)
    if experiment is None:
        raise RunUnreadable(run=run.id)
    others = ", ".join(name for name in experiment.variants if name != experiment.baseline)
    if request.variant == experiment.baseline:
        raise BaselineNotConfirmed(variant=request.variant, run=run.id, known=others)
    if request.variant not in experiment.variants:
        raise NotInRun(variant=request.variant, run=run.id, known=others)
    seed = derived_seed(experiment.seed, f"confirm {run.id}")
    variants = {name: experiment.variants[name] for name in (experiment.baseline, request.variant)}
    layouts = _layouts(experiment, tuple(variants.values()), request)
    if layouts:
        variants = {name: recipe.model_copy(update={"layout_seed": seed}) for name, recipe in variants.items()}
    workload = experiment.workload.select_tests(request.tests) if request.tests else experiment.workload
    return experiment.model_copy(
        update={
            "name": f"{experiment.name[: MOST_SHORT_NAME - len(SUFFIX)]}{SUFFIX}",
            "variants": variants,
            "workload": workload,
            "seed": seed,
            "layouts": layouts,
            "blocks": max(request.blocks or experiment.blocks, layouts),
            "auto": False,
            "pilot": "",
            "confirm": None,
        }
    )


def _layouts(experiment: Experiment, recipes: Sequence[Recipe], request: ConfirmRequest) -> int:
    """Return the number of link orders; 0 where no kernel is linked."""
    is_linked = open_machine(experiment.machine).describe().needs_images
    if not is_linked or any(recipe.image is not None for recipe in recipes):
        return 0
    return experiment.layouts or LAYOUTS if request.layouts is None else request.layouts


def beside(promised: RunReport, found: RunReport, request: ConfirmRequest, experiment: Experiment) -> ConfirmedWinner:
    """Return the effects of both runs side by side. Pure."""
    effects_promised = {
        comparison.benchmark: comparison for comparison in promised.comparisons if comparison.variant == request.variant
    }
    effects = tuple(
        _confirmed(comparison, comparison.benchmark, effects_promised.get(comparison.benchmark))
        for comparison in found.comparisons
        if comparison.variant == request.variant
    )
    mean_promised, mean = (
        next((mean for mean in report.geometric_means if mean.variant == request.variant), None)
        for report in (promised, found)
    )
    has_same_tests = effects_promised.keys() == {effect.benchmark for effect in effects}  # means of others differ
    return ConfirmedWinner(
        variant=request.variant,
        baseline=found.baseline,
        run=promised.run.id,
        confirmation=found.run.id,
        blocks=experiment.blocks,
        layouts=experiment.layouts,
        mean=_confirmed(mean, "", mean_promised if has_same_tests else None) if mean else None,
        effects=effects,
        sentence=mean.sentence if mean else "",
    )


def _confirmed(judged: _Judged, benchmark: str, promised: _Judged | None) -> ConfirmedEffect:
    estimate = judged.estimate
    low, high = (estimate.low, estimate.high) if estimate else (None, None)
    return ConfirmedEffect(
        benchmark=benchmark,
        promised=_effect(promised) if promised else None,
        promised_verdict=promised.verdict if promised else None,
        found=_effect(judged),
        low=None if low is None else low - 1,
        high=None if high is None else high - 1,
        verdict=judged.verdict,
    )


def _effect(judged: _Judged) -> float | None:
    return judged.estimate.ratio - 1 if judged.estimate else None
