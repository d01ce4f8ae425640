"""Samplers of libraries, for a comparison in the recorded space: Optuna's TPE and SMAC's random forest.

kdyno needs neither: tools/search-table uses those that the Python has which runs it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from kdyno.tune.space.samplers import Proposer, SearchView, propose_at_random
from kdyno.tune.space.space import Point

ASKED_AGAIN = 40
"""How often Optuna is asked again if it proposes a recipe that isn't on record, or one again."""
STARTUP = 8
"""The trials at random before a model is used."""


def propose_by_optuna(view: SearchView) -> Point:
    """Return what a study proposes that is rebuilt from the trials."""
    import optuna  # type: ignore[import-not-found]

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    seed = view.rng.randrange(2**31)
    sampler: dict[str, Any] = {
        "multivariate": True,
        "group": True,
        "constant_liar": True,
        "warn_independent_sampling": False,
    }
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP, **sampler),
    )
    knobs = {
        knob.key: optuna.distributions.CategoricalDistribution(range(len(knob.choices))) for knob in view.space.knobs
    }
    for point, trial in view.measured.items():
        params = dict(zip(knobs, point, strict=True))
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=knobs, value=trial.measured["speed"].value)
        )
    candidates = set(view.candidates)
    for _ in range(ASKED_AGAIN):
        asked = study.ask(knobs)
        point = tuple(int(asked.params[key]) for key in knobs)
        if point in candidates:
            return point
    return propose_at_random(view)


def propose_by_smac(view: SearchView) -> Point:
    """Return the candidate with the most expected improvement by SMAC's random forest."""
    from ConfigSpace import CategoricalHyperparameter, Configuration, ConfigurationSpace  # type: ignore[import-not-found]
    from smac.acquisition.function import EI  # type: ignore[import-not-found]
    from smac.model.random_forest import RandomForest  # type: ignore[import-not-found]

    if len(view.measured) < STARTUP:
        return propose_at_random(view)
    seed = view.rng.randrange(2**31)
    space = ConfigurationSpace(seed=seed)
    names = [f"k{place:02}" for place, _ in enumerate(view.space.knobs)]
    space.add(
        [
            CategoricalHyperparameter(name, list(range(len(knob.choices))))
            for name, knob in zip(names, view.space.knobs, strict=True)
        ]
    )

    def configured(point: Point) -> Any:
        return Configuration(space, values=dict(zip(names, point, strict=True)))

    tried = [configured(point) for point in view.measured]
    costs = np.array([[-trial.measured["speed"].value] for trial in view.measured.values()])
    forest = RandomForest(configspace=space, seed=seed)
    forest.train(np.array([one.get_array() for one in tried]), costs)
    improvement = EI(log=False)
    improvement.update(model=forest, eta=float(costs.min()))
    candidates = list(view.candidates)
    view.rng.shuffle(candidates)
    worth = improvement([configured(point) for point in candidates])
    return candidates[int(np.argmax(worth))]


def library_proposers() -> dict[str, Proposer]:
    """Return the samplers of the libraries that are installed, by name."""
    proposers: dict[str, Proposer] = {}
    if find_spec("optuna"):
        proposers["Optuna's TPE"] = propose_by_optuna
    if find_spec("smac"):
        proposers["SMAC's random forest"] = propose_by_smac
    return proposers
