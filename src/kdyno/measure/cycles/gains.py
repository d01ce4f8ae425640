"""What recipes gain on a processor of a family, beside what its model gives for them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, model_validator

from kdyno.base.frozen import Frozen
from kdyno.base.text import format_count

Ratio = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=0, strict=True)]

NOT_COMPARED = "no processor of this family was asked what its gains are worth: `kdyno validate --paths` asks this one"


class SiliconGain(Frozen):
    """What one recipe gains on a processor and in the model: geometric means of speeds, 1.16 is 16 % faster."""

    recipe: str
    """In words for readers, with what it was compared with: `AutoFDO, trained on the paths, against gcc -O2`."""
    cpu: str
    """The processor that timed it."""
    paths: Annotated[int, Field(ge=1, strict=True)]
    """The number of paths in the means."""
    silicon: Ratio
    model: Ratio
    held_out_correlation: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Of the logarithms of ratios, on the paths that no weight was fitted to; None if it isn't known."""
    held_out_median_error: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """The median of |ratio in the model / ratio on the processor - 1| on the same paths."""
    wrong_signs: Number
    """Paths that are clearly slower on the processor and faster in the model, or the reverse."""
    clear: Number
    """Paths that differ beyond the processor's noise."""

    @model_validator(mode="after")
    def _counts_fit(self) -> SiliconGain:
        if not self.wrong_signs <= self.clear <= self.paths:
            raise ValueError("wrong_signs must not exceed clear, nor clear paths")
        return self

    @property
    def inflation(self) -> float:
        """The distance of the two means, as |ln(model / silicon)|."""
        return abs(math.log(self.model / self.silicon))


def gains_note(gains: Sequence[SiliconGain]) -> str:
    """Return the sentence that goes with modelled gains: where the model was furthest from a processor."""
    if not gains:
        return NOT_COMPARED
    worst = max(gains, key=lambda gain: gain.inflation)
    other_count = len(gains) - 1
    ending = f"; it was nearer in {format_count(other_count, 'other recipe')}" if other_count else ""
    return (
        f"the model said {_percent(worst.model)} where {worst.cpu} said {_percent(worst.silicon)} "
        f"({worst.recipe}; {format_count(worst.paths, 'path')}){ending}"
    )


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
