"""The kernels of an experiment on silicon: which of its variants can be had on this host's processor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.kernel.recipe import Recipe
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.images import build_images
from kdyno.runs.prepare import Prepared, prepare
from kdyno.runs.session import Session
from kdyno.runs.silicon import on_silicon, select_variants
from kdyno.runs.train import make_inputs


@dataclass(frozen=True)
class SiliconPlan:
    """What an experiment can have on this processor."""

    experiment: Experiment | None
    """The baseline and the variants that can be had; None if there is nothing to compare."""
    left_out: Mapping[str, str]
    """Variants that can't be had, with the reasons."""


def plan_on_silicon(experiment: Experiment, state: State) -> SiliconPlan:
    """Find out which variants can be had on this processor, as far as that is known before the builds.

    Raises the errors of the machine, which concern all of them.
    """
    prepared, left_out = _prepared(on_silicon(experiment), state)
    return _remaining(on_silicon(experiment), prepared, left_out)


def build_on_silicon(experiment: Experiment, session: Session) -> SiliconPlan:
    """Build the kernels for this processor, and find out which variants can be had. Raises as `plan_on_silicon`, and
    what training raises.
    """
    whole = on_silicon(experiment)
    with session.state.hold_shared():
        prepared, left_out = _prepared(whole, session.state)
        for name, of_variant in prepared.items():
            try:
                make_inputs(of_variant.trainings, session)
                build_images({name: of_variant.plans.get(name, ())}, session.state, session.talk)
            except UserError as error:
                left_out[name] = str(error)
    return _remaining(whole, prepared, left_out)


def _prepared(whole: Experiment, state: State) -> tuple[dict[str, Prepared], dict[str, str]]:
    """Prepare each variant beside the baseline; return those that can be had, the baseline first, and the reasons of
    the others. Without the baseline none can be had.
    """
    prepared: dict[str, Prepared] = {}
    left_out: dict[str, str] = {}
    for name in dict.fromkeys((whole.baseline, *whole.variants)):
        if whole.baseline in left_out:
            break
        if reason := _unfit(whole.variants[name]):
            left_out[name] = reason
            continue
        try:
            prepared[name] = prepare(select_variants(whole, {whole.baseline, name}), state, Talk(quiet=True))
        except UserError as error:
            left_out[name] = str(error)
    return prepared, left_out


def _unfit(recipe: Recipe) -> str:
    """Return why a recipe can't become a kernel of another architecture; empty if that is not known."""
    if recipe.image is not None:
        return "it is a built kernel"
    return "it has a base configuration of its own, for another architecture" if recipe.config is not None else ""


def _remaining(whole: Experiment, prepared: Mapping[str, Prepared], left_out: Mapping[str, str]) -> SiliconPlan:
    names = set(prepared) - set(left_out)
    is_comparable = whole.baseline in names and len(names) > 1
    remaining = select_variants(whole, names).model_copy(update={"left_out": left_out})
    return SiliconPlan(remaining if is_comparable else None, left_out)
