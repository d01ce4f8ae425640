"""Reads the tables [space] and [search] of an experiment file: the space, and the recipe of each of its points."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kdyno.base.errors import UserError
from kdyno.base.frozen import digest
from kdyno.base.mistakes import Mistake, mistakes
from kdyno.kernel.recipe import RUNTIME, RecipeSpec
from kdyno.runs.experiment.errors import NoRecipeSpace
from kdyno.runs.experiment.file import ReadFile, read_file
from kdyno.runs.experiment.models import Experiment, VariantSpec
from kdyno.runs.experiment.named import settings_of
from kdyno.runs.experiment.resolve import resolve
from kdyno.runs.experiment.space import Condition, KnobSpec, Risk, SearchConfig, SpaceConfig
from kdyno.runs.experiment.variants import expand
from kdyno.tune.space.listed import risk_of
from kdyno.tune.space.space import Point, Space, SpaceKnob, Value, describe

MOST_VARIANT_NAME = 60
"""The most characters of a recipe's name as a variant, before a digest."""
UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")
SINGLE = ("toolchain", "opt", "march", "mtune", "lto", "delegation", "layout_seed", "order", "config", "page_size")
"""Keys of the recipe that have one value."""
WORDS = ("cmdline", "cflags")
"""Keys of the recipe that are lists of words."""
TABLES = ("kconfig", "sysctl", "block")
"""Keys of the recipe that are tables."""
PROFILE = "profile"
USES, TRAIN = "+", ":"
"""Stand between the uses of a profile, and before what it is trained on: `autofdo+order:lmbench`."""
NO_PROFILE = "none"


class BuiltBaseline(UserError):
    message = (
        "the baseline {name} is a built kernel, of which only {runtime} can be searched, but [space.knobs] has {key}"
    )
    hint = "choose a baseline that kdyno builds, or remove the knob"


class AllHeldOut(UserError):
    message = "[search] held_out names all tests of the workload, so that none is left to search by"
    hint = "hold out some of them, or name more tests in [workload]"


@dataclass(frozen=True)
class SpaceFile:
    """A checked space, with the experiment of its baseline."""

    file: ReadFile
    experiment: Experiment
    """The experiment of the file, without the tests that are held out."""
    space: Space
    search: SearchConfig
    _baseline: RecipeSpec

    def name(self, point: Point) -> str:
        """Return the name of the variant of a recipe."""
        title = self.space.title(point)
        name = UNFIT.sub("-", title).strip("-")
        if len(name) <= MOST_VARIANT_NAME and name not in self.file.content.variants:
            return name
        return f"{name[:MOST_VARIANT_NAME]}-{digest(title)[:8]}"

    def experiment_of(self, point: Point) -> Experiment:
        """Return the experiment with two variants, the baseline and the recipe of a point. Raises UserError if the
        recipe contradicts itself.
        """
        settings = settings_of(self._baseline)
        for knob, choice in zip(self.space.knobs, point, strict=True):
            if choice:
                _apply(settings, knob, knob.choices[choice])
        written = self.file.content
        try:
            trial = VariantSpec.model_validate(settings)
        except ValidationError as error:
            raise self.file.written.refusal(mistakes(error, RecipeSpec, settings)) from None
        name = self.name(point)
        content = written.model_copy(update={"variants": {**written.variants, name: trial}})
        experiment = without_held_out(resolve(ReadFile(self.file.written, content)), self.search.held_out)
        variants = {variant: experiment.variants[variant] for variant in (experiment.baseline, name)}
        return experiment.model_copy(update={"variants": variants})


def read_space(path: Path, config: Mapping[str, str] | None = None) -> SpaceFile:
    """Read and check the space of an experiment file.

    `config` has the values of Kconfig symbols in the baseline's kernel, if that is built: they are the baseline's
    choices of symbols that its recipe leaves alone. Raises NoRecipeSpace, BadExperiment, UnlistedKnob, and
    what `Space.check`, `without_held_out` and reading an experiment raise.
    """
    file = read_file(path)
    content = file.content
    if content.space is None:
        raise NoRecipeSpace(path=path)
    experiment = without_held_out(resolve(file), content.search.held_out)
    baseline = expand(content.variants)[content.baseline]
    _require_knobs(file, content.space, baseline)
    knobs, left_out = [], list[str]()
    for key, spec in content.space.knobs.items():
        knob, omitted = _knob(key, spec, baseline, content.search, config or {})
        left_out += omitted
        knobs.append(knob)
    space = Space(tuple(knobs), content.space.forbid, tuple(left_out))
    _require_conditions(file, content.space, space)
    space.check()
    return SpaceFile(file, experiment, space, content.search, baseline)


def without_held_out(experiment: Experiment, held_out: tuple[str, ...]) -> Experiment:
    """Return an experiment without the tests that are held out.

    Raises AllHeldOut, NoTests, and what reading names of tests raises.
    """
    if not held_out:
        return experiment
    lane, workload = experiment.machine.lane, experiment.workload
    held = {order.name for order in workload.select_tests(held_out).part(lane).tests}
    part = workload.part(lane)
    kept = [order.name for order in part.tests if order.name not in held]
    if not (kept or part.programs):
        raise AllHeldOut
    if len(kept) == len(part.tests):
        return experiment
    return experiment.model_copy(update={"workload": workload.select_tests(kept)})


def _knob(
    key: str, spec: KnobSpec, baseline: RecipeSpec, search: SearchConfig, config: Mapping[str, str]
) -> tuple[SpaceKnob, list[str]]:
    """Return a knob without the choices that are too risky, and these."""
    own = _baseline_value(key, spec, baseline, config)
    others = [value for value in spec.choices if describe(value) != describe(own)]
    field, _, name = key.partition(".")
    risks: dict[str, Risk] = {
        describe(value): spec.risk or risk_of(field, name, str(_written(value)), key) for value in others
    }
    kept = [value for value in others if risks[describe(value)] in search.allow]
    left_out = [
        f"{key}={describe(value)} ({risks[describe(value)]})"
        for value in others
        if describe(value) not in map(describe, kept)
    ]
    return (
        SpaceKnob(
            key=key,
            choices=(own, *kept),
            when=spec.when or {},
            risks=("none", *(risks[describe(value)] for value in kept)),
        ),
        left_out,
    )


def _written(value: Value) -> str:
    """Return a value as Kconfig or a command line has it."""
    return "" if value is None else describe(value) if isinstance(value, bool) else str(value)


def _baseline_value(key: str, spec: KnobSpec, baseline: RecipeSpec, config: Mapping[str, str]) -> Value:
    """Return the value that the baseline has of a knob; None if it leaves the knob alone."""
    field, _, name = key.partition(".")
    value = getattr(baseline, field)
    if field in WORDS:
        fitting = [choice for choice in spec.choices if choice and set(str(choice).split()) <= set(value)]
        return fitting[0] if fitting else ""
    if field == PROFILE:
        if not value:
            return NO_PROFILE
        return f"{USES.join(value.use)}{TRAIN}{USES.join(value.train)}" if value.train else USES.join(value.use)
    if field not in TABLES:
        own: Value = value
        return own
    if name in value:
        found: Value = value[name]
        return found
    if field == "kconfig" and name in config:
        return next((choice for choice in spec.choices if describe(choice) == config[name].strip('"')), None)
    # Kconfig's own value is not known before the baseline is built: n of a symbol that is y or n by the file.
    if field == "kconfig" and {describe(choice) for choice in spec.choices} == {"y", "n"}:
        return False
    return None


def _apply(settings: dict[str, Any], knob: SpaceKnob, value: Value) -> None:
    """Set a knob in the settings of a recipe."""
    field, _, name = knob.key.partition(".")
    if field in WORDS:
        others = {word for choice in knob.choices if choice for word in str(choice).split()}
        words = tuple(word for word in settings.get(field, ()) if word not in others)
        settings[field] = (*words, *str(value or "").split())
    elif field in TABLES:
        table = {key: other for key, other in settings.get(field, {}).items() if key != name}
        settings[field] = table if value is None else {**table, name: value}
    elif field == PROFILE:
        uses, colon, train = str(value).partition(TRAIN)
        own = settings.get(field)
        profile = own.model_dump(exclude_unset=True, by_alias=True) if own else {}
        profile |= {"use": tuple(uses.split(USES))} | ({"train": tuple(train.split(USES))} if colon else {})
        settings[field] = None if value in (None, NO_PROFILE) else profile
    elif value in (None, ""):
        settings.pop(field, None)
    else:
        settings[field] = value


def _require_knobs(file: ReadFile, space: SpaceConfig, baseline: RecipeSpec) -> None:
    """Raise BadExperiment for keys that are not knobs, and for values that they can't have; BuiltBaseline."""
    wrong = []
    known = [*SINGLE, PROFILE, *(f"{field}.NAME" for field in (*TABLES, *WORDS))]
    for key, spec in space.knobs.items():
        field, dot, name = key.partition(".")
        keys = ("space", "knobs", key)
        if (field in (*TABLES, *WORDS)) != bool(dot and name) or (not dot and field not in SINGLE and field != PROFILE):
            wrong.append(
                Mistake(keys, keys, "", f"it is not a knob that can be searched; there are {', '.join(known)}")
            )
            continue
        if baseline.image is not None and field not in RUNTIME:
            raise BuiltBaseline(name=file.content.baseline, runtime=", ".join(RUNTIME), key=key)
        probe = SpaceKnob(key, (None, *spec.choices))
        for value in spec.choices:
            settings: dict[str, Any] = {}
            _apply(settings, probe, value)
            try:
                RecipeSpec.model_validate(settings)
            except ValidationError as error:
                wrong += [
                    Mistake(keys, keys, "", f"{describe(value)}: {mistake.words}")
                    for mistake in mistakes(error, RecipeSpec, settings)
                ]
    if wrong:
        raise file.written.refusal(wrong)


def _require_conditions(file: ReadFile, config: SpaceConfig, space: Space) -> None:
    """Raise BadExperiment for conditions that name a knob or a choice that the space lacks."""
    choices = {key: [describe(value) for value in spec.choices] for key, spec in config.knobs.items()}
    for knob in space.knobs:
        choices[knob.key] = [*map(describe, knob.choices), *choices[knob.key]]
    wrong = []
    conditions: list[tuple[tuple[str, ...], Condition]] = [
        (("space", "knobs", key, "when"), spec.when) for key, spec in config.knobs.items() if spec.when
    ]
    conditions += [(("space", "forbid"), combination) for combination in config.forbid]
    for keys, condition in conditions:
        for key, values in condition.items():
            if key not in choices:
                wrong.append(Mistake(keys, keys, "", f"there is no knob {key} in [space.knobs]"))
                continue
            for value in values:
                if describe(value) not in choices[key]:
                    among = ", ".join(dict.fromkeys(choices[key]))
                    wrong.append(
                        Mistake(keys, keys, "", f"{describe(value)} is not a choice of {key}: there are {among}")
                    )
    if wrong:
        raise file.written.refusal(wrong)
