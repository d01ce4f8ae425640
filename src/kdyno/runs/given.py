"""Kernels of an experiment that are built already: looked at first, since they decide what machine it takes."""

from __future__ import annotations

from collections.abc import Mapping

from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import MachineSettings
from kdyno.kernel.build import BuildPlan
from kdyno.kernel.built_kernels.modules import WANTED
from kdyno.kernel.built_kernels.plan import GivenPlan, plan_given
from kdyno.kernel.recipe import KconfigValue, Recipe
from kdyno.runs.experiment.models import Experiment


class KernelUnfitForWorkload(UserError):
    message = "variant {variant}: the workload needs what {image} has not:\n{list}"
    hint = "take another workload, or a kernel that kdyno builds: it asks for what the workload needs"


def given_plans(
    experiment: Experiment, variants: Mapping[str, Recipe], state: State, talk: Talk
) -> dict[str, GivenPlan]:
    """By variant: the built kernels, kept as images. Raises what `plan_given` raises, and KernelUnfitForWorkload.

    `variants` are those of the experiment that are to be planned.
    """
    if not experiment.machine.starts_kernels:
        return {}
    plans = {name: plan_given(recipe, state, talk.say) for name, recipe in variants.items() if recipe.image is not None}
    needed = experiment.workload.needs().kconfig if plans else {}
    for name, plan in plans.items():
        if lines := unmet(needed, plan.asked, plan.record.modules):
            raise KernelUnfitForWorkload(variant=name, image=plan.source.origin, list="\n".join(lines))
    return plans


def unmet(needed: Mapping[str, KconfigValue], config: Mapping[str, str], modules: tuple[str, ...]) -> list[str]:
    """What a workload needs and a configuration lacks, a line each; a module that is at hand will do. Pure."""
    lines = []
    for symbol, value in needed.items():
        wanted = {True: "y", False: "n"}.get(value, str(value)) if isinstance(value, bool) else str(value)
        actual = config.get(symbol, "n")
        if actual.strip('"') != wanted and not (wanted == "y" and actual == "m" and WANTED.get(symbol) in modules):
            lines.append(f"  CONFIG_{symbol}={wanted} (here: {actual})")
    return lines


def fit_machine(settings: MachineSettings, given: Mapping[str, GivenPlan]) -> MachineSettings:
    """The machine on which the built kernels can be started, as far as an experiment leaves that open."""
    kernels = [(plan.asked, plan.record.modules) for plan in given.values()]
    return settings.with_platform_for(kernels) if kernels else settings


def require_startable(settings: MachineSettings, variant: str, plan: BuildPlan | GivenPlan, *, has_given: bool) -> None:
    """Raise KernelNotStartable for a kernel that is known not to come up on the machine that the run has.

    `has_given` says whether built kernels take part in the run.
    """
    if isinstance(plan, GivenPlan):
        settings.require_startable(plan.asked, plan.record.modules, f"variant {variant}", plan.source.origin)
    elif plan.base.kind == "fragment" and has_given:
        # Of other base configurations it comes out when the kernel's own tools have made them whole.
        where = f"the configuration {plan.base.spec}"
        settings.require_startable(plan.asked, (), f"variant {variant}", where, is_whole=False)
