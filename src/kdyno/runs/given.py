"""The built kernels of an experiment. They are planned first, since the machine depends on them."""

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


class BuiltKernelIsNotAProgram(UserError):
    message = "variant {variant} is the built kernel {image}, which a machine of type `{type}` can't run as a process"
    hint = 'take type = "qemu" in [machine], or a recipe that kdyno builds'


class KernelUnfitForWorkload(UserError):
    message = "variant {variant}: the workload needs options that {image} lacks:\n{list}"
    hint = "use another workload, or a kernel that kdyno builds, which gets the options of the workload"


def given_plans(
    experiment: Experiment, variants: Mapping[str, Recipe], state: State, talk: Talk
) -> dict[str, GivenPlan]:
    """Return the plans of built kernels by variant, and keep the kernels as images.

    `variants` are the planned variants of the experiment. Raises what `plan_given` raises, BuiltKernelIsNotAProgram and
    KernelUnfitForWorkload.
    """
    machine = experiment.machine
    if not machine.starts_kernels:
        return {}
    for name, recipe in variants.items():
        if recipe.image is not None and machine.runner == "kernel":
            raise BuiltKernelIsNotAProgram(variant=name, image=recipe.image, type=machine.type)
    plans = {name: plan_given(recipe, state, talk.say) for name, recipe in variants.items() if recipe.image is not None}
    # A system of its own needs nothing of a guest's root file system, and loads modules that are not known here.
    required = {} if machine.has_own_system else experiment.workload.needs().kconfig
    for name, plan in plans.items():
        if lines := unmet(required, plan.asked, plan.record.modules):
            raise KernelUnfitForWorkload(variant=name, image=plan.source.origin, list="\n".join(lines))
    return plans


def unmet(required: Mapping[str, KconfigValue], config: Mapping[str, str], modules: tuple[str, ...]) -> list[str]:
    """Return a line for each symbol that a workload needs and a configuration lacks.

    An available module suffices. Pure.
    """
    lines = []
    for symbol, value in required.items():
        expected = {True: "y", False: "n"}.get(value, str(value)) if isinstance(value, bool) else str(value)
        actual = config.get(symbol, "n")
        if actual.strip('"') != expected and not (expected == "y" and actual == "m" and WANTED.get(symbol) in modules):
            lines.append(f"  CONFIG_{symbol}={expected} (here: {actual})")
    return lines


def fit_machine(settings: MachineSettings, given: Mapping[str, GivenPlan]) -> MachineSettings:
    """Return the machine on which the built kernels can be started, as far as the experiment leaves it open."""
    kernels = [(plan.asked, plan.record.modules) for plan in given.values()]
    return settings.with_platform_for(kernels) if kernels else settings


def require_startable(settings: MachineSettings, variant: str, plan: BuildPlan | GivenPlan, *, has_given: bool) -> None:
    """Raise KernelNotStartable for a kernel that is known not to start on the machine of the run.

    `has_given` is true if built kernels are part of the run.
    """
    if isinstance(plan, GivenPlan):
        settings.require_startable(plan.asked, plan.record.modules, f"variant {variant}", plan.source.origin)
    elif plan.base.kind == "fragment" and has_given:
        # Other base configurations are checked when the kernel's own tools have completed them.
        origin = f"the configuration {plan.base.spec}"
        settings.require_startable(plan.asked, (), f"variant {variant}", origin, is_whole=False)
