"""Which knobs matter: functional ANOVA of the predicted gains, and the ablation of the best recipe. Pure.

Functional ANOVA: Hutter, Hoos and Leyton-Brown, An efficient approach for assessing hyperparameter importance, ICML
2014. Intervals are of draws from the posterior of the effects: a knob that was hardly tried has a wide one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np

from kdyno.base.arrays import Values
from kdyno.runs.experiment.space import Objective
from kdyno.tune.space.effects import Effects
from kdyno.tune.space.model import KnobImportance
from kdyno.tune.space.outcome import TrialOutcome
from kdyno.tune.space.space import Point, Space

SAMPLE = 400
"""Points of the space whose gains are predicted."""
DRAWN = 400
"""Draws from the posterior."""
LEAST_RECIPES = 4
"""The fewest measured recipes that say anything about knobs."""
INTERVAL = (0.025, 0.975)


def knob_importance(
    space: Space, measured: Mapping[Point, TrialOutcome], best: Point | None, objective: Objective, seed: int
) -> tuple[KnobImportance, ...]:
    """Return the importance of each knob, the most important first; empty if too little was measured."""
    trials = {point: trial for point, trial in measured.items() if objective in trial.measured}
    if len(trials) < LEAST_RECIPES:
        return ()
    gains = [trial.measured[objective].value for trial in trials.values()]
    errors = [trial.measured[objective].error for trial in trials.values()]
    effects = Effects(list(trials), gains, float(np.sqrt(np.mean(np.square(errors)))))
    rng, chance = np.random.default_rng(seed), random.Random(f"kdyno importance {seed}")
    points = list(space.points)
    sample = points if len(points) <= SAMPLE else chance.sample(points, SAMPLE)
    reverted = _reverted(space, best) if best is not None else {}
    asked = [*sample, *([best] if best is not None else []), *reverted.values()]
    draws = effects.draws(asked, DRAWN, rng)
    of_sample = draws[:, : len(sample)]
    total = of_sample.var(axis=1)
    losses = {place: draws[:, len(sample)] - draws[:, len(sample) + 1 + index] for index, place in enumerate(reverted)}
    rows = []
    for place, knob in enumerate(space.knobs):
        shares = _main_shares(of_sample, np.array([point[place] for point in sample]), total)
        low, high = np.quantile(shares, INTERVAL)
        choice = knob.title(best[place]) if best is not None and best[place] else ""
        row = KnobImportance(key=knob.key, share=float(shares.mean()), low=float(low), high=float(high), choice=choice)
        if place in losses:
            loss_low, loss_high = map(float, np.quantile(losses[place], INTERVAL))
            row = row.model_copy(
                update={"loss": float(losses[place].mean()), "loss_low": loss_low, "loss_high": loss_high}
            )
        rows.append(row)
    return tuple(sorted(rows, key=lambda row: -row.share))


def _main_shares(draws: Values, choices: np.ndarray[tuple[int], np.dtype[np.int64]], total: Values) -> Values:
    """Return for each draw the part of the variance that lies between the choices of a knob."""
    mean = draws.mean(axis=1)
    between = np.zeros(len(draws))
    for choice in np.unique(choices):
        group = draws[:, choices == choice]
        between += group.shape[1] * (group.mean(axis=1) - mean) ** 2
    return np.asarray(between / draws.shape[1] / np.maximum(total, 1e-18))


def _reverted(space: Space, best: Point) -> dict[int, Point]:
    """Return the best recipe with the baseline's choice of each knob that it changed, by the knob's place."""
    return {
        place: space.canonical([*best[:place], 0, *best[place + 1 :]]) for place, choice in enumerate(best) if choice
    }
