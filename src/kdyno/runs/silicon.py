"""An experiment on silicon: the same recipes as kernels that are processes, timed on this host's processor."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pydantic import ValidationError

from kdyno.base.lanes import LANES
from kdyno.base.text import format_count
from kdyno.boot.registry import default_machine
from kdyno.kernel.arch import ARCHES
from kdyno.kernel.recipe import KconfigValue, Recipe
from kdyno.measure.paths.table import paths
from kdyno.measure.workload.needs import Runner
from kdyno.measure.workload.registry import default_workload
from kdyno.runs.experiment.models import MOST_SHORT_NAME, Experiment, confirmation_problem
from kdyno.store.records import CONFIRMATION_SUFFIX, RunRecord
from kdyno.store.store import Store

BLOCKS = 12
RUNNER: Runner = "kernel"
"""The runner of the paths: a kernel that is a process."""


def on_silicon(experiment: Experiment) -> Experiment:
    """Return the experiment with this processor as its machine: same source, recipes, seeds and inputs. Pure.

    Profiles are trained as in the experiment. Symbols that only its workloads, their training and its machine need are
    left out, as no program is started.
    """
    machine = default_machine(RUNNER)
    arch = ARCHES[machine.arch]
    loads = [
        recipe.profile.trainee.load
        for recipe in experiment.variants.values()
        if recipe.profile and recipe.profile.trainee
    ]
    needed = {**experiment.machine.needed_kconfig(), **reduce(or_, loads, experiment.workload.needs()).kconfig}
    chosen = [path.name for path in paths().values() if path.kind == "path"]
    return experiment.model_copy(
        update={
            "name": f"{experiment.name[: MOST_SHORT_NAME - len(CONFIRMATION_SUFFIX)]}{CONFIRMATION_SUFFIX}",
            "machine": machine,
            "config": arch.base,
            "workload": default_workload(RUNNER).select_tests(chosen),
            "variants": {name: _recipe(recipe, needed) for name, recipe in experiment.variants.items()},
            "blocks": BLOCKS,
            "auto": False,
            "pilot": "",
            "layouts": min(experiment.layouts, BLOCKS),
            "judge": experiment.judge.model_copy(update={"looks": 1}),
            "confirm": None,
        }
    )


def _recipe(recipe: Recipe, needed: Mapping[str, KconfigValue]) -> Recipe:
    own = {symbol: value for symbol, value in recipe.kconfig.items() if needed.get(symbol) != value}
    arch = ARCHES[default_machine(RUNNER).arch]
    is_base = recipe.config is not None and arch.base_for(recipe.config) == arch.base
    return recipe.model_copy(update={"kconfig": own, **({"config": None} if is_base else {})})


def find_confirmation_of(run: RunRecord, store: Store) -> RunRecord | None:
    """Return the newest run on record that confirms a run, the newest complete one if there is any.

    It has the same recipes on this processor, or some of them. None if there is none, or if there can't be any.
    """
    experiment = recorded_experiment(run)
    if experiment is None or confirmation_problem(experiment.machine):
        return None
    expected = on_silicon(experiment)
    summaries = [summary for summary in store.runs() if summary.name == expected.name]
    summaries.sort(key=lambda summary: summary.status != "complete")
    runs = (store.run(summary.id) for summary in summaries)
    return next((run for run in runs if _is_confirmation(run, expected)), None)


def _is_confirmation(run: RunRecord, expected: Experiment) -> bool:
    recorded = recorded_experiment(run)
    if recorded is None:
        return False
    return recorded.model_copy(update={"left_out": {}}) == select_variants(expected, set(recorded.variants))


def recorded_experiment(run: RunRecord) -> Experiment | None:
    """Return the experiment of a run; None if this kdyno can't read it."""
    try:
        return Experiment.model_validate_json(run.experiment)
    except ValidationError:
        return None


def select_variants(whole: Experiment, names: set[str]) -> Experiment:
    """Return the experiment with these of its variants."""
    variants = {name: recipe for name, recipe in whole.variants.items() if name in names}
    return whole.model_copy(update={"variants": variants})


def offer(experiment: Experiment) -> str:
    """Return a note that this processor can be asked about gains by profiles that were only modelled; empty if there
    are none.
    """
    machine = experiment.machine
    is_modelled = machine.starts_kernels and machine.runner != RUNNER and LANES[machine.lane].is_icount
    if experiment.confirm or not is_modelled or not any(recipe.profile for recipe in experiment.variants.values()):
        return ""
    builds = format_count(len(experiment.variants), "more build")
    return f'note: `confirm = "silicon"` in the experiment would ask this processor: {builds} and a minute'
