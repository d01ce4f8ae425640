"""A sibling of an image: the kernel of its record, built again with more in its configuration. Kept like any image."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.kernel.image import Image, ImageRecord
from kdyno.kernel.inputs import Input, kept_at
from kdyno.kernel.plan import BuildPlan, plan_build
from kdyno.kernel.recipe import Recipe, Training
from kdyno.kernel.source import fetch
from kdyno.runs.images import build_images
from kdyno.runs.soak.variants import SoakVariant, sibling


class NotAgain(UserError):
    message = "a sibling of image {image} can't be built: {why}"
    hint = "build its experiment again (`kdyno build`), and soak the image that comes of it"


def sibling_image(image: Image, variants: Sequence[SoakVariant], state: State, talk: Talk) -> Image:
    """The image with what the variants add, with the very profile of the first; built unless it is there.

    Raises NotAgain where the record doesn't lead to the image any more, and what builds raise.
    """
    record = image.record
    plan = _planned(record, record.recipe, state, talk)
    if plan.key != record.key:
        why = "its source, base configuration, patches or compiler are not what they were"
        raise NotAgain(image=record.key[:12], why=why)
    name = f"{record.key[:12]} with {', '.join(variants)}"
    wanted = _planned(record, sibling(record.recipe, variants), state, talk)
    return build_images({name: (wanted,)}, state, talk)[name][0]


def _planned(record: ImageRecord, recipe: Recipe, state: State, talk: Talk) -> BuildPlan:
    source = fetch(record.source.spec, state, talk.say)

    def kept(name: str, _training: Training, _exporter: str) -> Input:
        """The profile that the image was made with: nothing is trained again."""
        digest = record.inputs.get(name, "")
        path = kept_at(digest, state)
        if not digest or not path.is_file():
            raise NotAgain(image=record.key[:12], why=f"its {name} is no more in the state directory")
        return Input(name=name, digest=digest, path=path)

    return plan_build(recipe, source, record.base, state, trained=kept)
