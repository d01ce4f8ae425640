"""From variants as written to recipes: `extends` is followed, `matrix` expanded, and trainees are made. Pure."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from kdyno.base.errors import UserError
from kdyno.base.mistakes import Mistake, mistakes, problems
from kdyno.kernel.knobs import MATRIX_KNOBS
from kdyno.kernel.recipe import KconfigValue, Profile, ProfileSpec, Recipe, RecipeSpec, Trainee
from kdyno.measure.workload.needs import Load
from kdyno.runs.experiment.models import MOST_ENTRIES, MOST_NAME, MOST_RECORDED_BYTES, MOST_VARIANTS, VariantSpec

DEFAULT_LOAD = ("general",)
"""What a profile is trained on that doesn't say."""
CIRCLE_SHOWN = 10
"""Variants of a circle, in messages."""


class UnknownParent(UserError):
    message = "variant {name} extends {parent}, which does not exist"
    hint = "variants: {known}"


class CircularExtends(UserError):
    message = "variants extend each other in a circle: {circle}"
    hint = "one of them must stand on its own"


class NotAMatrixKnob(UserError):
    message = "variant {name}: the matrix names {knob}, which is not a knob of one value"
    hint = "knobs of one value: {known}"


class BadMatrixValue(UserError):
    message = "variant {name}: {why}"
    hint = "see `kdyno schema experiment` for what each knob takes"


class TooManyVariants(UserError):
    message = "with variant {name} there are {count:,} variants, of at most {most:,}"
    hint = "every combination of a matrix is a variant: leave values out, or make several experiments of it"


class VariantTooLarge(UserError):
    message = "variant {name}: {why}"
    hint = "put what variants share into a file that they name: fragments, or one patch of several"


class SameName(UserError):
    message = "two variants are called {name}"
    hint = "give one of them another name"


class UnknownTrainee(UserError):
    message = "variant {name} is trained on {trainee}, which does not exist"
    hint = "variants: {known}"


class TraineeIsBuilt(UserError):
    message = "variant {name} is to be trained on {trainee}, which is a built kernel"
    hint = "name a variant that kdyno builds: a profile fits the kernel that it was counted on"


class CircularTraining(UserError):
    message = "variants are trained on each other in a circle: {circle}"
    hint = "one of them must be built without a profile of the others"


def expand(specs: Mapping[str, VariantSpec]) -> dict[str, RecipeSpec]:
    """What each variant is made of, in the order in which they are written."""
    recipes: dict[str, RecipeSpec] = {}
    inherited: dict[str, dict[str, Any]] = {}
    size = 0
    for name, spec in specs.items():
        count = len(recipes) + math.prod(map(len, spec.matrix.values()))
        if count > MOST_VARIANTS:
            raise TooManyVariants(name=name, count=count, most=MOST_VARIANTS)
        settings = _inherited(name, specs, inherited)
        for expanded_name, values in _combinations(name, spec):
            if expanded_name in recipes:
                raise SameName(name=expanded_name)
            if len(expanded_name) > MOST_NAME:
                raise BadMatrixValue(name=name, why=f"its name with values in it has more than {MOST_NAME} characters")
            try:
                recipes[expanded_name] = RecipeSpec.model_validate(settings | values)
            except ValidationError as error:
                raise BadMatrixValue(name=name, why="; ".join(problems(error, RecipeSpec, settings | values))) from None
            size += len(recipes[expanded_name].model_dump_json())
            if size > MOST_RECORDED_BYTES:
                why = f"with it the experiment has more than {MOST_RECORDED_BYTES:,} bytes"
                raise VariantTooLarge(name=name, why=why)
    return recipes


def matrix_mistakes(specs: Mapping[str, VariantSpec]) -> Iterator[Mistake]:
    """What is wrong with values of matrices by themselves, each once, at its place in the file."""
    for name, spec in specs.items():
        for knob in filter(MATRIX_KNOBS.__contains__, spec.matrix):
            for place, value in enumerate(spec.matrix[knob]):
                try:
                    RecipeSpec.model_validate({knob: value})
                except ValidationError as error:
                    keys = ("variants", name, "matrix", knob, place)
                    found = mistakes(error, RecipeSpec, {knob: value})
                    yield from (replace(mistake, keys=keys, location=keys) for mistake in found)


def resolve_recipes(
    specs: Mapping[str, RecipeSpec],
    source: str,
    config: str,
    kconfig: Mapping[str, KconfigValue],
    load_of: Callable[[tuple[str, ...]], Load],
) -> dict[str, Recipe]:
    """The recipes of variants, each profile with what is booted to train it; source and configuration are named there.

    `kconfig` is what workloads need of each kernel; what a variant says itself counts more, and a built kernel stays as
    it is. `load_of` gives what is carried out where a profile says that it is trained on that. Raises UnknownTrainee,
    TraineeIsBuilt and CircularTraining.
    """

    def recipe_of(spec: RecipeSpec, profile: ProfileSpec | None) -> Recipe:
        written = {field: getattr(spec, field) for field in RecipeSpec.model_fields}
        needed = {} if spec.image is not None else kconfig
        return Recipe.model_validate({**written, "kconfig": {**needed, **spec.kconfig}, "profile": profile})

    def resolved(name: str, below: tuple[str, ...]) -> Recipe:
        if name in below:
            raise CircularTraining(circle=" -> ".join((*below, name)))
        spec = specs[name]
        profile = spec.profile
        if profile is None or profile.from_ is not None:
            return recipe_of(spec, profile)
        trainee = Trainee(
            variant=profile.on or name,
            recipe=booted(name, spec, profile.on, (*below, name)),
            load=load_of(profile.train or DEFAULT_LOAD),
        )
        return recipe_of(spec, Profile.model_validate({**profile.model_dump(exclude_unset=True), "trainee": trainee}))

    def booted(name: str, spec: RecipeSpec, on: str | None, below: tuple[str, ...]) -> Recipe:
        if on is not None and on not in specs:
            raise UnknownTrainee(name=name, trainee=on, known=", ".join(specs))
        trainee = recipe_of(spec, None) if on is None else resolved(on, below)
        if trainee.image is not None:
            raise TraineeIsBuilt(name=name, trainee=on)
        own = {"source": trainee.source or source, "config": trainee.config or config}
        return trainee.model_copy(update=own)

    return {name: resolved(name, ()) for name in specs}


def _inherited(name: str, specs: Mapping[str, VariantSpec], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What a variant says and what it has from those that it extends; what is `known` is not looked up again."""
    chain: list[str] = []
    step: str | None = name
    while step is not None and step not in known:
        if step in chain:
            raise CircularExtends(circle=" -> ".join((*chain[-CIRCLE_SHOWN:], step)))
        if step not in specs:
            raise UnknownParent(name=chain[-1], parent=step, known=", ".join(specs))
        chain.append(step)
        step = specs[step].extends
    settings = known[step] if step is not None else {}
    for link in reversed(chain):
        spec = specs[link]
        own = {key: getattr(spec, key) for key in spec.model_fields_set if key in RecipeSpec.model_fields}
        settings = known[link] = _merged(settings, own)
        for key, value in settings.items():
            if isinstance(value, dict | tuple) and len(value) > MOST_ENTRIES:
                raise VariantTooLarge(name=link, why=f"`{key}` has more than {MOST_ENTRIES:,} entries")
    return settings


def _merged(parent: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    merged = dict(parent)
    for key, value in own.items():
        match value:
            case dict():
                merged[key] = parent.get(key, {}) | value
            case tuple():
                merged[key] = parent.get(key, ()) + value
            case _:
                merged[key] = value
    return merged


def _combinations(name: str, spec: VariantSpec) -> list[tuple[str, dict[str, Any]]]:
    for knob in spec.matrix:
        if knob not in MATRIX_KNOBS:
            raise NotAMatrixKnob(name=name, knob=knob, known=", ".join(MATRIX_KNOBS))
    combinations = []
    for values in itertools.product(*spec.matrix.values()):
        suffix = "".join(f"-{re.sub(r'[^A-Za-z0-9._+-]', '_', str(value))}" for value in values)
        combinations.append((name + suffix, dict(zip(spec.matrix, values, strict=True))))
    return combinations
