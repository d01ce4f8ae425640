"""Builds the images of an experiment from its plans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import MachineSettings
from kdyno.kernel.build import BuildPlan, build_layouts
from kdyno.kernel.built_kernels.plan import GivenPlan
from kdyno.kernel.image import Image
from kdyno.kernel.images import configuration_of, is_built, load_image

Plan = BuildPlan | GivenPlan
Plans = Mapping[str, tuple[Plan, ...]]
"""By variant, one for each layout; variants that differ only in how they are started share their images."""
Images = Mapping[str, tuple[Image, ...]]
"""Images by variant, one for each layout."""


def require_cpus(machine: MachineSettings, images: Images) -> None:
    """Raise CpusMissing for a kernel that was built for fewer CPUs than the machine has."""
    for variant, (first, *_) in images.items():
        config = configuration_of(first)
        machine.require_cpus(config, f"the kernel of variant {variant}")


def build_images(plans: Plans, state: State, talk: Talk) -> Images:
    """Build each image once, whatever number of variants needs it. Images that differ only in layout share objects."""
    plans_by_objects: dict[str, list[tuple[str, BuildPlan]]] = defaultdict(list)
    image_by_key: dict[str, Image] = {}
    for variant, layouts in plans.items():
        for plan in layouts:
            if isinstance(plan, GivenPlan):
                image_by_key[plan.key] = load_image(plan.key, state)
            else:
                plans_by_objects[plan.objects_key].append((variant, plan))
    all_plans = [plan for group in plans_by_objects.values() for _, plan in group]
    notes: set[str] = set()

    def say_once(note: str) -> None:
        if note not in notes:
            notes.add(note)
            talk.say(note)

    for group in plans_by_objects.values():
        variants = ", ".join(dict.fromkeys(variant for variant, _ in group))
        with talk.working(f"building {variants}", is_estimate=True) as advance:
            missing_keys = {plan.key for _, plan in group if not is_built(plan.key, state)}
            built_images = build_layouts(
                [plan for _, plan in group],
                state,
                advance,
                say=say_once,
                heard=talk.on_build_output,
                others=all_plans,
            )
        talk.on_images_built(len(missing_keys))
        image_by_key |= {image.record.key: image for image in built_images}
    return {variant: tuple(image_by_key[plan.key] for plan in layouts) for variant, layouts in plans.items()}
