"""Times of trials: a kernel beside the reference, in an ordinary run of both, block by block, so that drift of the host
affects both alike.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kdyno.base.errors import InfrastructureError
from kdyno.base.measurement import Benchmark
from kdyno.base.talk import Talk
from kdyno.judge.verdicts.values import Table, table
from kdyno.kernel.recipe import Recipe
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.run import run_experiment
from kdyno.runs.session import Session
from kdyno.tune.delegation.trial import Ratios

REFERENCE = "reference"
TRIAL = "trial"
BLOCKS = 3
"""Blocks of a trial for each link order."""


class KernelNotTimed(InfrastructureError):
    message = "the {name} was not timed: {reason}"
    hint = "see its boots: kdyno show {run}"


class BootsOfTrialLost(KernelNotTimed):
    """The host failed. The kernel may be good."""

    message = "boots of the {name} were lost: {reason}"


@dataclass(frozen=True)
class TrialTimer:
    """Times kernels beside the reference."""

    experiment: Experiment
    """The experiment of the search, whose machine tells time."""
    layout_seed: int
    """The seed of the link orders that all kernels share."""
    layouts: int
    session: Session

    @property
    def boots(self) -> int:
        """The number of boots of one trial, the reference's included."""
        return 2 * BLOCKS * self.layouts

    def ratios(self, reference: Recipe, trial: Recipe) -> Ratios:
        """Run both kernels, unless that run is on record. Raises KernelNotTimed and what runs raise."""
        variants = {REFERENCE: reference, TRIAL: trial}
        experiment = self.experiment.model_copy(
            update={
                "name": f"{self.experiment.name}-trial",
                "confirm": None,
                "auto": False,
                "variants": {
                    name: recipe.model_copy(update={"layout_seed": self.layout_seed})
                    for name, recipe in variants.items()
                },
                "baseline": REFERENCE,
                "layouts": self.layouts,
                "blocks": BLOCKS * self.layouts,
            }
        )
        session = replace(self.session, talk=Talk(quiet=True))
        finished = run_experiment(experiment, session, again=False)
        if finished.outcome.lost:
            reason = next(iter(finished.outcome.lost.values()))
            raise BootsOfTrialLost(name=TRIAL, reason=reason, run=finished.run_id)
        for name, reason in finished.outcome.given_up.items():
            raise KernelNotTimed(name=name, reason=reason, run=finished.run_id)
        benchmarks = session.store.benchmarks(finished.run_id)
        ratios = time_ratios(table(session.store.boots(finished.run_id), benchmarks), benchmarks, self.layouts)
        if missing := set(experiment.workload.benchmark_names()) - set(ratios[0]):
            reason = f"some of its boots left no times of {', '.join(sorted(missing))}"
            raise KernelNotTimed(name=TRIAL, reason=reason, run=finished.run_id)
        return ratios


def time_ratios(values: Table, benchmarks: Sequence[Benchmark], layouts: int) -> Ratios:
    """Return the times of the trial as parts of the reference's, a geometric mean over the blocks of a link order.

    A benchmark without a value of both kernels in one block of each link order is left out. Pure.
    """
    ratios: list[dict[str, float]] = [{} for _ in range(layouts)]
    for benchmark in benchmarks:
        sign = 1 if benchmark.direction == "lower" else -1
        reference, trial = (values.get((variant, benchmark.name), {}) for variant in (REFERENCE, TRIAL))
        differences: dict[int, list[float]] = defaultdict(list)
        for block in sorted(reference.keys() & trial.keys()):
            differences[block % layouts].append(sign * math.log(trial[block] / reference[block]))
        if len(differences) == layouts:
            for layout, logarithms in differences.items():
                ratios[layout][benchmark.name] = math.exp(statistics.fmean(logarithms))
    return ratios
