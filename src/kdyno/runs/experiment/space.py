"""The tables [space] and [search]: the recipes that `kdyno tune` searches, and the effort that it may take."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import GuestLaneName

MOST_KNOBS = 60
MOST_CHOICES = 50
MOST_RUNGS = 8
MOST_FORBIDDEN = 200

ChoiceValue = str | int | bool
KnobKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_./-]+)?$", max_length=200)]
Risk = Literal["none", "debugging", "feature", "hardening", "mitigation"]
"""What a choice may cost beside time: `debugging`: what a failing kernel can tell; `feature`: something that programs
may use; `hardening` and `mitigation`: protection."""
SAFETY: tuple[Risk, ...] = ("hardening", "mitigation")
"""The risks that trade safety."""
Objective = Literal["speed", "text", "build"]
Sampler = Literal["effects", "random", "one-at-a-time"]


def _several(value: Any) -> Any:
    """Return a list of one for a single value."""
    return value if isinstance(value, list | tuple) else (value,)


Values = Annotated[
    tuple[ChoiceValue, ...],
    BeforeValidator(_several, json_schema_input_type=ChoiceValue | tuple[ChoiceValue, ...]),
    Field(min_length=1, max_length=MOST_CHOICES),
]
Condition = Annotated[dict[KnobKey, Values], Field(min_length=1, max_length=MOST_KNOBS)]
"""By knob, the choices of which it must have one; all of them must hold."""


class KnobSpec(Frozen):
    """A knob of a space: a key of the recipe, and the values that it may take."""

    choices: Values
    """The values. That of the baseline is always among them."""
    when: Condition | None = None
    """The knob is as in the baseline unless this holds."""
    risk: Risk | None = None
    """What its choices may cost, for a symbol or a parameter that kdyno's list lacks."""


def _spec(value: Any) -> Any:
    """Return the table of a knob that is written as a list of its choices."""
    return {"choices": value} if isinstance(value, list | tuple) else value


class SpaceConfig(Frozen):
    """The recipes of a search."""

    knobs: Annotated[
        dict[
            KnobKey,
            Annotated[KnobSpec, BeforeValidator(_spec, json_schema_input_type=KnobSpec | tuple[ChoiceValue, ...])],
        ],
        Field(min_length=1, max_length=MOST_KNOBS),
    ]
    """By key: a knob of one value (`opt`), an entry of a table (`kconfig.SLUB_TINY`, `sysctl.vm/swappiness`), or words
    of a list under a name of your own (`cmdline.init`, `cflags.inline`)."""
    forbid: Annotated[tuple[Condition, ...], Field(max_length=MOST_FORBIDDEN)] = ()
    """Combinations that are left out."""


class RungSpec(Frozen):
    """One rung of a search: how a recipe is measured there."""

    blocks: Annotated[int, Field(ge=2, le=1000)]
    """Boots of the recipe and of the baseline."""
    tests: tuple[str, ...] = ()
    """The tests of [workload] that run; empty: all."""
    lane: GuestLaneName | None = None
    """The lane, where it is to be another than the machine's."""


class SearchConfig(Frozen):
    """The effort of a search, and what it is for."""

    builds: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """The most kernels that are compiled; None: no limit."""
    recipes: Annotated[int, Field(ge=2, le=10_000)] = 60
    """The most recipes that are measured, the baseline included."""
    hours: Annotated[float, Field(gt=0, le=10_000)] | None = None
    """The most hours of builds and boots; None: no limit."""
    objectives: Annotated[tuple[Objective, ...], Field(min_length=1)] = ("speed",)
    """What counts. The winner is the best by the first; the others decide with it which recipes are tried, and are
    shown."""
    sampler: Sampler = "effects"
    """What proposes recipes."""
    allow: tuple[Risk, ...] = ("none", "debugging")
    """The risks that a choice may have. Choices with others are left out."""
    rungs: Annotated[tuple[RungSpec, ...], Field(max_length=MOST_RUNGS)] = ()
    """How recipes are measured, the cheapest first; of those on a rung the best third goes to the next one. Empty: two
    blocks, then all blocks of the experiment."""
    held_out: tuple[str, ...] = ()
    """Tests of the same workload that the search doesn't use: the winner is confirmed by them, too."""
    images_gb: Annotated[float, Field(gt=0, le=100_000)] | None = None
    """The most that images of this search take, in GB: beyond it the oldest are removed. None: all are kept."""

    @model_validator(mode="after")
    def _fits_together(self) -> SearchConfig:
        if len(set(self.objectives)) < len(self.objectives):
            raise PydanticCustomError("search", "`objectives` has a name twice")
        return self
