"""Resolves variants to recipes: follows `extends`, expands `matrix`, and makes trainees. Pure."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from kdyno.base.errors import UserError
from kdyno.base.mistakes import Mistake, mistakes, problems
from kdyno.boot.registry import default_machine
from kdyno.kernel.arch import ARCHES
from kdyno.kernel.knobs import MATRIX_KNOBS
from kdyno.kernel.recipe import KconfigValue, Profile, ProfileSpec, Recipe, RecipeSpec, Trainee
from kdyno.measure.workload.needs import Load
from kdyno.runs.experiment.models import MOST_ENTRIES, MOST_NAME, MOST_RECORDED_BYTES, MOST_VARIANTS, VariantSpec
from kdyno.runs.experiment.named import merge, named_recipes, settings_of

DEFAULT_LOAD = ("general",)
"""The load that trains a profile without `train`."""
CIRCLE_SHOWN = 10
"""The most variants of a circle in messages."""


class UnknownParent(UserError):
    message = "variant {name} extends {parent}, which does not exist"
    hint = "variants: {known}; recipes that kdyno has: {recipes}"


class CircularExtends(UserError):
    message = "variants extend each other in a circle: {circle}"
    hint = "remove `extends` from one of them"


class NotAMatrixKnob(UserError):
    message = "variant {name}: the matrix names {knob}, which is not a knob of one value"
    hint = "knobs of one value: {known}"


class BadMatrixValue(UserError):
    message = "variant {name}: {why}"
    hint = "see `kdyno schema experiment` for the values of each knob"


class TooManyVariants(UserError):
    message = "with variant {name} there are {count:,} variants, of at most {most:,}"
    hint = "every combination of a matrix is a variant: remove values, or split the experiment"


class VariantTooLarge(UserError):
    message = "variant {name}: {why}"
    hint = "move shared settings into a file that the variants name: a fragment, or one patch instead of several"


class SameName(UserError):
    message = "two variants are called {name}"
    hint = "give one of them another name"


class UnknownTrainee(UserError):
    message = "variant {name} is trained on {trainee}, which does not exist"
    hint = "variants: {known}"


class TraineeIsBuilt(UserError):
    message = "variant {name} is to be trained on {trainee}, which is a built kernel"
    hint = "name a variant that kdyno builds: a profile matches only the kernel that it was counted on"


class CircularTraining(UserError):
    message = "variants are trained on each other in a circle: {circle}"
    hint = "build one of them without a profile of the others"


def expand(specs: Mapping[str, VariantSpec]) -> dict[str, RecipeSpec]:
    """Return the recipe of each variant, in the order of the file.

    Raises UnknownParent, CircularExtends, NotAMatrixKnob, BadMatrixValue, TooManyVariants, VariantTooLarge and
    SameName.
    """
    recipes: dict[str, RecipeSpec] = {}
    inherited: dict[str, dict[str, Any]] = {}
    size = 0
    for name, spec in specs.items():
        count = len(recipes) + math.prod(map(len, spec.matrix.values()))
        if count > MOST_VARIANTS:
            raise TooManyVariants(name=name, count=count, most=MOST_VARIANTS)
        settings = _inherit(name, specs, inherited)
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
    """Yield the mistakes in values of matrices, each once, with its place in the file."""
    for name, spec in specs.items():
        for knob in filter(MATRIX_KNOBS.__contains__, spec.matrix):
            for place, value in enumerate(spec.matrix[knob]):
                try:
                    RecipeSpec.model_validate({knob: value})
                except ValidationError as error:
                    keys = ("variants", name, "matrix", knob, place)
                    value_mistakes = mistakes(error, RecipeSpec, {knob: value})
                    yield from (replace(mistake, keys=keys, location=keys) for mistake in value_mistakes)


@dataclass(frozen=True)
class NeededKconfig:
    """The symbols that kernels must have for one purpose."""

    of_loads: Mapping[str, KconfigValue] = field(default_factory=dict)
    """What the loads need."""
    of_machine: Mapping[str, KconfigValue] = field(default_factory=dict)
    """What the machine needs, which kdyno's own configurations have."""

    def on_top_of(self, config: str) -> dict[str, KconfigValue]:
        """Return the symbols that this base configuration may lack."""
        is_own = any(config == arch.base for arch in ARCHES.values())
        return {**({} if is_own else self.of_machine), **self.of_loads}


def resolve_recipes(
    specs: Mapping[str, RecipeSpec],
    source: str,
    config: str,
    needed: NeededKconfig,
    training_kconfig: Mapping[str, KconfigValue],
    load_of: Callable[[tuple[str, ...]], Load],
) -> dict[str, Recipe]:
    """Return the recipes of variants. Each profile has its trainee, which names source and configuration.

    `needed` is what each kernel must have, `training_kconfig` what loads need in trainees. The symbols of a variant
    override these, and a built kernel stays as it is. `load_of` returns the load for the names in `train`. Raises
    UnknownTrainee, TraineeIsBuilt and CircularTraining.
    """

    def recipe_of(spec: RecipeSpec, profile: ProfileSpec | None) -> Recipe:
        settings = {field: getattr(spec, field) for field in RecipeSpec.model_fields}
        needed_kconfig = {} if spec.image is not None else needed.on_top_of(spec.config or config)
        return Recipe.model_validate({**settings, "kconfig": {**needed_kconfig, **spec.kconfig}, "profile": profile})

    def resolve_variant(name: str, path: tuple[str, ...]) -> Recipe:
        if name in path:
            raise CircularTraining(circle=" -> ".join((*path, name)))
        spec = specs[name]
        profile = spec.profile
        if profile is None or profile.from_ is not None:
            return recipe_of(spec, profile)
        load = load_of(profile.train or DEFAULT_LOAD)
        recipe = resolve_trainee(name, spec, profile.on, load, (*path, name))
        trainee = Trainee(variant=profile.on or name, recipe=recipe, load=load)
        return recipe_of(spec, Profile.model_validate({**profile.model_dump(exclude_unset=True), "trainee": trainee}))

    def resolve_trainee(
        name: str, spec: RecipeSpec, trainee_name: str | None, load: Load, path: tuple[str, ...]
    ) -> Recipe:
        if trainee_name is not None and trainee_name not in specs:
            raise UnknownTrainee(name=name, trainee=trainee_name, known=", ".join(specs))
        trainee = recipe_of(spec, None) if trainee_name is None else resolve_variant(trainee_name, path)
        if trainee.image is not None:
            raise TraineeIsBuilt(name=name, trainee=trainee_name)
        base = trainee.config or config
        by_trainee = NeededKconfig(training_kconfig, default_machine(load.runner).needed_kconfig())
        trainee_kconfig = {**by_trainee.on_top_of(base), **trainee.kconfig}
        origin = {"source": trainee.source or source, "config": base, "kconfig": trainee_kconfig}
        return trainee.model_copy(update=origin)

    return {name: resolve_variant(name, ()) for name in specs}


def _inherit(
    name: str, specs: Mapping[str, VariantSpec], settings_by_name: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the settings of a variant with those that it inherits from variants, or at last from a recipe that kdyno
    has. `settings_by_name` is a cache of them.

    A variant may have the name of the recipe that it extends.
    """
    recipe = RecipeSpec()
    chain: list[str] = []
    step: str | None = name
    while step is not None and step not in settings_by_name:
        if step in named_recipes() and (step not in specs or chain[-1:] == [step]):
            recipe, step = named_recipes()[step], None
            break
        if step in chain:
            raise CircularExtends(circle=" -> ".join((*chain[-CIRCLE_SHOWN:], step)))
        if step not in specs:
            raise UnknownParent(name=chain[-1], parent=step, known=", ".join(specs), recipes=", ".join(named_recipes()))
        chain.append(step)
        step = specs[step].extends
    settings = settings_by_name[step] if step is not None else settings_of(recipe)
    for link in reversed(chain):
        spec = specs[link]
        settings = settings_by_name[link] = merge(settings, settings_of(spec))
        for key, value in settings.items():
            if isinstance(value, dict | tuple) and len(value) > MOST_ENTRIES:
                raise VariantTooLarge(name=link, why=f"`{key}` has more than {MOST_ENTRIES:,} entries")
    return settings


def _combinations(name: str, spec: VariantSpec) -> list[tuple[str, dict[str, Any]]]:
    for knob in spec.matrix:
        if knob not in MATRIX_KNOBS:
            raise NotAMatrixKnob(name=name, knob=knob, known=", ".join(MATRIX_KNOBS))
    combinations = []
    for values in itertools.product(*spec.matrix.values()):
        suffix = "".join(f"-{re.sub(r'[^A-Za-z0-9._+-]', '_', str(value))}" for value in values)
        combinations.append((name + suffix, dict(zip(spec.matrix, values, strict=True))))
    return combinations
