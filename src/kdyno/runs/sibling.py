"""A sibling of an image: the kernel of its record, built again with more symbols. It is kept like any image."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.kernel.arch import ARCHES
from kdyno.kernel.image import Image, ImageRecord
from kdyno.kernel.inputs import Input, kept_at
from kdyno.kernel.plan import BuildPlan, plan_build
from kdyno.kernel.recipe import Recipe, Training
from kdyno.kernel.source import fetch
from kdyno.runs.images import build_images
from kdyno.runs.soak.variants import SoakVariant, sibling


class NotAgain(UserError):
    message = "a sibling of image {image} cannot be built: {why}"
    hint = "build its experiment again with `kdyno build`, and soak the new image"


def sibling_image(image: Image, variants: Sequence[SoakVariant], state: State, talk: Talk) -> Image:
    """Return the image with the symbols of the variants and with the profile of the original; build it if necessary.

    Raises NotAgain if the record doesn't give the same image any more, and what builds raise.
    """
    record = image.record
    plan = _plan(record, record.recipe, state, talk)
    if plan.key != record.key:
        reason = "its source, base configuration, patches or compiler have changed"
        raise NotAgain(image=record.key[:12], why=reason)
    name = f"{record.key[:12]} with {', '.join(variants)}"
    sibling_plan = _plan(record, sibling(record.recipe, variants), state, talk)
    return build_images({name: (sibling_plan,)}, state, talk)[name][0]


def _plan(record: ImageRecord, recipe: Recipe, state: State, talk: Talk) -> BuildPlan:
    source = fetch(record.source.spec, state, talk.say)

    def kept_input(name: str, _training: Training, _exporter: str) -> Input:
        """Return the profile that the image was built with: training is not repeated."""
        digest = record.inputs.get(name, "")
        path = kept_at(digest, state)
        if not digest or not path.is_file():
            raise NotAgain(image=record.key[:12], why=f"its {name} is not in the state directory any more")
        return Input(name=name, digest=digest, path=path)

    return plan_build(recipe, source, record.base, state, trained=kept_input, arch=ARCHES[record.arch])
