"""What a trial of a recipe has shown. Pure."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from kdyno.base.frozen import Frozen
from kdyno.runs.experiment.space import ChoiceValue, Objective

Finite = Annotated[float, Field(allow_inf_nan=False)]
Stage = Literal["recipe", "build", "boot", "check"]
"""Where a recipe failed: before any build (a knob or Kconfig refused it), in the build, in its boots, in its own tests
(KUnit)."""


class Measured(Frozen):
    """A value of an objective: the logarithm of a ratio to the baseline, positive if the recipe is better."""

    value: Finite
    error: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """The standard error of the value."""

    @property
    def gain(self) -> float:
        """Return the gain as a fraction."""
        return math.expm1(self.value)


class TrialOutcome(Frozen):
    """The outcome of one trial: a recipe on one rung."""

    values: dict[str, ChoiceValue | None]
    """The values of the knobs that differ from the baseline, by key."""
    rung: Annotated[int, Field(ge=0, lt=100)]
    measured: dict[Objective, Measured] = {}
    """By objective; empty if the recipe failed."""
    failed: Stage | None = None
    reason: str = ""
    """Why the recipe failed."""
    run: str | None = None
    """The run in the store; null if there were no boots."""
    image: str | None = None
    """The key of the first image."""
    build_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """The seconds of the builds that this trial took; 0: its images existed."""
    boot_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0

    @property
    def is_ok(self) -> bool:
        return self.failed is None

    @property
    def seconds(self) -> float:
        return self.build_seconds + self.boot_seconds
