"""The range between two recipes: each step gives one knob, word or Kconfig symbol the value of the bad end.

Two base configurations that are whole .config files differ in many symbols. A kernel of the range then has a .config
with the values of the bad end for the first of these symbols, in the order of its file, and Kconfig's own tools settle
the dependencies: a symbol that can't be set yet is set by the step of what it depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from kdyno.base.errors import UserError
from kdyno.base.files import write_whole
from kdyno.base.frozen import digest
from kdyno.base.state import State
from kdyno.base.text import clean_line
from kdyno.kernel import knobs
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.kconfig import resolve_base
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.recipe import Recipe, RecipeSpec
from kdyno.runs.experiment.ab import PLAIN, UNFIT, read_side

MOST_NAME = 60
MOST_TITLE = 100
FILE = "file:"
CONFIG = "config"
OFF = "n"
UNABLE = ("image", "profile", "source")
"""Knobs that can't differ: a built kernel has no steps, the trainee of a profile is a recipe of its own, and a source
has commits."""

Step = tuple[str, str, Any]
"""A knob; the key, word or symbol of it that changes, empty if it is the whole knob; and the new value, None if it is
absent at the bad end."""


class SameRecipes(UserError):
    message = "`{good}` and `{bad}` are the same recipe"
    hint = "name two recipes that differ"


class RecipesUnfit(UserError):
    message = "`{good}` and `{bad}` differ in {knob}, which has no steps in between"
    hint = "for commits name a range, GOOD..BAD; for the others compare both recipes by `kdyno ab`"


@dataclass(frozen=True)
class RecipeRange:
    """Recipe 0 is the good end; each further one has one difference less from the bad end."""

    kind: ClassVar[Literal["recipes"]] = "recipes"

    words: tuple[str, ...]
    """The recipes as the user wrote them."""
    good: RecipeSpec
    changes: tuple[Step, ...]
    configs: tuple[dict[str, str], dict[str, str]]
    """The symbols of both base configurations, if these differ and are files; empty otherwise."""
    state: State

    @property
    def named(self) -> str:
        return " ".join(self.words)

    @property
    def steps(self) -> int:
        return len(self.changes)

    @property
    def resolved(self) -> dict[str, str]:
        """The changes, as a digest: a file that a recipe names may have changed."""
        changes = [[knob, key, str(value)] for knob, key, value in self.changes]
        return {self.named: digest([changes, self.good.model_dump(mode="json")])}

    def name(self, state: int) -> str:
        """Return the name of a kernel, which is that of its variant."""
        if state == 0:
            return "good"
        knob, key, _ = self.changes[state - 1]
        return UNFIT.sub("-", f"{state}-{key or knob}")[:MOST_NAME].rstrip("._+-")

    def title(self, state: int) -> str:
        """Return the change that leads to a kernel."""
        if state == 0:
            return "the good end"
        knob, key, value = self.changes[state - 1]
        if knob == CONFIG and key:
            old, new = (config.get(key, "absent") for config in self.configs)
            return clean_line(f"{key}: {old} to {new}")[:MOST_TITLE]
        old = getattr(self.good, knob)
        match old:
            case dict():
                text = f"{knob}.{key}: {old.get(key, 'absent')} to {'absent' if value is None else value}"
            case tuple():
                text = f"{knob}: {'without' if value is None else 'with'} {key}"
            case _:
                text = f"{knob}: {old} to {value}"
        return clean_line(text)[:MOST_TITLE]

    def recipe(self, base: Recipe, state: int) -> Recipe:
        """Return the recipe of a kernel. May write a base configuration."""
        return self._with(base, self.changes[:state])

    def recipe_without(self, base: Recipe, step: int, directory: Path) -> Recipe:  # noqa: ARG002
        """Return the recipe of the bad end without a step."""
        return self._with(base, [*self.changes[: step - 1], *self.changes[step:]])

    def _with(self, base: Recipe, changes: Sequence[Step]) -> Recipe:
        """Return the good end's recipe with these changes, on top of what all kernels share."""
        plain = RecipeSpec()
        settings: dict[str, Any] = {name: getattr(base, name) for name in Recipe.model_fields}
        for name in RecipeSpec.model_fields:
            if (value := getattr(self.good, name)) != getattr(plain, name):
                settings[name] = value
        settings["kconfig"] = {**base.kconfig, **self.good.kconfig}
        config = dict(self.configs[0])
        for knob, key, value in changes:
            if knob == CONFIG and key:
                config.pop(key, None)
                config |= {} if value is None else {key: value}
            elif not key:
                settings[knob] = value
            elif isinstance(settings[knob], dict):
                others = {name: other for name, other in settings[knob].items() if name != key}
                settings[knob] = others if value is None else {**others, key: value}
            else:
                words = tuple(word for word in settings[knob] if word != key)
                settings[knob] = words if value is None else (*words, key)
        if config:
            settings[CONFIG] = self._write(config)
        return Recipe.model_validate(settings)

    def _write(self, config: dict[str, str]) -> str:
        """Write a base configuration, and return its spec."""
        lines = [
            f"# CONFIG_{name} is not set" if value == OFF else f"CONFIG_{name}={value}"
            for name, value in config.items()
        ]
        text = "\n".join(lines) + "\n"
        path = self.state.bisects / f"config-{digest(text)[:32]}.config"
        if not path.exists():
            write_whole(path, text)
        return f"{FILE}{path}"

    def built(self, records: Iterable[ImageRecord], base: Recipe, config: str) -> frozenset[int]:
        """Return the states whose image is among the records, with this base configuration unless a recipe has one."""
        if self.configs[0]:
            return frozenset()  # each would have to be written to find out
        images = {(record.recipe.model_dump_json(), record.base) for record in records}
        recipes = ((state, self.recipe(base, state)) for state in range(self.steps + 1))
        return frozenset(
            state for state, recipe in recipes if (recipe.built.model_dump_json(), recipe.config or config) in images
        )

    def notes(self) -> list[str]:
        """Return nothing: recipes have no work tree."""
        return []

    def advice(self, before: int, after: int) -> str:  # noqa: ARG002
        """Return an empty text: a change is a single one."""
        return ""


def is_recipe(word: str, base: Path) -> bool:
    """Return whether a word of the command line is a recipe in short form."""
    return word == PLAIN or ("=" in word and not (base / word).exists())


def read_recipes(words: Sequence[str], base: Path, state: State) -> RecipeRange:
    """Return the range between two recipes. Raises what reading recipes raises, SameRecipes and RecipesUnfit."""
    good, bad = (knobs.located(read_side(word).recipe, base) for word in words)
    for knob in UNABLE:
        if getattr(good, knob) != getattr(bad, knob):
            raise RecipesUnfit(good=words[0], bad=words[1], knob=knob)
    configs: tuple[dict[str, str], dict[str, str]] = ({}, {})
    changes: list[Step] = []
    for knob in RecipeSpec.model_fields:
        old, new = getattr(good, knob), getattr(bad, knob)
        if old == new:
            continue
        if knob == CONFIG and all(isinstance(spec, str) and spec.startswith(FILE) for spec in (old, new)):
            configs = _with_absent(_symbols(old), _symbols(new))
            changes += [(knob, name, configs[1].get(name)) for name in _differing(*configs)]
        elif isinstance(old, dict):
            names = [*new, *(name for name in old if name not in new)]
            changes += [(knob, name, new.get(name)) for name in names if old.get(name) != new.get(name)]
        elif isinstance(old, tuple):
            changes += [(knob, word, None) for word in old if word not in new]
            changes += [(knob, word, word) for word in new if word not in old]
        else:
            changes.append((knob, "", new))
    if not changes:
        raise SameRecipes(good=words[0], bad=words[1])
    return RecipeRange(tuple(words), good, tuple(changes), configs, state)


def _symbols(spec: str) -> dict[str, str]:
    """Return the symbols of a base configuration. Raises BaseMissing and ValueRuns."""
    return read_config(resolve_base(spec).text)


def _with_absent(old: dict[str, str], new: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return both configurations with the symbols that are off in one of them and absent in the other off in both.

    Such a symbol is no step. Absent it would get its default as soon as what it depends on is set.
    """
    off = {name: OFF for name in [*old, *new] if old.get(name, OFF) == new.get(name, OFF) == OFF}
    return {**old, **off}, {**new, **off}


def _differing(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """Return the symbols with different values, in the order of the new configuration, then of the old one."""
    names = [*new, *(name for name in old if name not in new)]
    return [name for name in names if old.get(name) != new.get(name)]
