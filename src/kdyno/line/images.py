"""Building: from the plans of an experiment to its images."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from kdyno.kernel.build import BuildPlan, build_layouts
from kdyno.kernel.image import Image
from kdyno.line.prepare import Plans
from kdyno.state import State
from kdyno.talk import Talk

Images = Mapping[str, tuple[Image, ...]]
"""By variant, one for each layout."""


def build_images(plans: Plans, state: State, talk: Talk) -> Images:
    """Each image is built once, whoever needs it and however often; what differs only in layout shares its objects."""
    wanted: dict[str, list[tuple[str, BuildPlan]]] = defaultdict(list)
    for variant, layouts in plans.items():
        for plan in layouts:
            wanted[plan.objects_key].append((variant, plan))
    notes: set[str] = set()

    def say_once(note: str) -> None:
        if note not in notes:
            notes.add(note)
            talk.say(note)

    images: dict[str, Image] = {}
    for group in wanted.values():
        variants = ", ".join(dict.fromkeys(variant for variant, _ in group))
        with talk.working(f"building {variants}", about=True) as advance:
            built = build_layouts([plan for _, plan in group], state, advance, say=say_once)
        images |= {image.record.key: image for image in built}
    return {variant: tuple(images[plan.key] for plan in layouts) for variant, layouts in plans.items()}
