"""The judgement: the mixed kernel against each kernel of one choice, in runs that share nothing with the trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdyno.base.frozen import Frozen
from kdyno.base.text import format_signed
from kdyno.judge.stats.verdict import BETTER, Verdict
from kdyno.judge.verdicts.model import RunReport
from kdyno.kernel.recipe import Recipe
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.tune import CompilerChoice
from kdyno.tune.delegation.delegation import whole_kernel

MIXED = "mixed"
"""The name of the chosen variant."""
LAYOUTS = 6
"""The number of link orders of each variant, if the experiment doesn't set it."""


class Against(Frozen):
    """The mixed kernel against one kernel of one choice, over a whole workload."""

    variant: str
    gain: float | None
    """By how much the mixed kernel is faster, as a fraction; None if nothing could be compared."""
    verdict: Verdict | None
    sentence: str

    @property
    def is_beaten(self) -> bool:
        return self.verdict in BETTER


class JudgedRun(Frozen):
    """One judged run."""

    workload: str
    """The workload: `chosen by` or `held out`."""
    run: str
    against: tuple[Against, ...]
    unjudged: dict[str, str] = {}
    """The reason by name of each kernel of one choice that never ran. These count as beaten."""

    @property
    def is_won(self) -> bool:
        """Return whether every kernel of one choice is beaten, and so the best of them."""
        return bool(self.against) and all(against.is_beaten for against in self.against)


def experiment_of(
    experiment: Experiment, mixed: Recipe, choices: Mapping[str, CompilerChoice], workload: WorkloadSettings, seed: int
) -> Experiment:
    """Return the experiment of one workload: the reference, each choice as a whole kernel, and the mixed kernel.

    It samples link orders. These and the seeds of boots are derived from `seed`.
    """
    reference = experiment.variants[experiment.baseline]
    variants = {
        experiment.baseline: reference,
        **{name: whole_kernel(reference, choice) for name, choice in choices.items()},
        MIXED: mixed,
    }
    layouts = experiment.layouts or LAYOUTS
    return experiment.model_copy(
        update={
            "confirm": None,
            "variants": {name: recipe.model_copy(update={"layout_seed": seed}) for name, recipe in variants.items()},
            "workload": workload,
            "layouts": layouts,
            "blocks": max(experiment.blocks, layouts),
            "seed": seed,
        }
    )


def judge_reports(workload: str, reports: Sequence[RunReport], unjudged: Mapping[str, str]) -> JudgedRun:
    """Return the judgement of one run. `reports` has one report for each baseline of the mixed kernel."""
    return JudgedRun(
        workload=workload,
        run=reports[0].run.id,
        against=tuple(_comparison(report) for report in reports if report.baseline not in unjudged),
        unjudged=dict(unjudged),
    )


def _comparison(report: RunReport) -> Against:
    [mean] = (mean for mean in report.geometric_means if mean.variant == MIXED)
    gain = mean.estimate.ratio - 1 if mean.estimate else None
    return Against(variant=report.baseline, gain=gain, verdict=mean.verdict, sentence=mean.sentence or mean.reason)


def claim(judgements: Sequence[JudgedRun]) -> str:
    """Return the last sentence of the command: a claim only if every comparison of every run supports it."""
    if judgements and all(judgement.is_won for judgement in judgements):
        closest = [
            (judgement, min(judgement.against, key=lambda against: against.gain or 0.0)) for judgement in judgements
        ]
        gains = " and ".join(
            f"{format_signed(best.gain or 0.0)} % on {best.variant} ({judgement.workload})"
            for judgement, best in closest
        )
        return f"the mixed kernel beats every kernel of one choice, the best of them by {gains}"
    open_ = [
        f"{against.variant} ({judgement.workload}: {against.verdict or 'nothing to compare'})"
        for judgement in judgements
        for against in judgement.against
        if not against.is_beaten
    ]
    return f"the mixed kernel does not beat the best kernel of one choice: not shown against {', '.join(open_)}"
