"""`kdyno ab`: the experiment that recipes in short form and a few options represent.

The experiment is a TOML text, which is checked like any other. Its paths are absolute: it may be in any directory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from kdyno.base import toml
from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import problems
from kdyno.base.names import require_text
from kdyno.boot.base import MachineSettings
from kdyno.boot.registry import kind_named, read_machine, settings_type
from kdyno.kernel import knobs
from kdyno.kernel.knobs.origin import CONFIG, SOURCE
from kdyno.kernel.recipe import RecipeSpec
from kdyno.kernel.source import FETCHERS
from kdyno.kernel.version import NotAKernelTree, kernel_version
from kdyno.measure.workload.definition import is_file, own_names
from kdyno.measure.workload.registry import default_workload
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.named import merge, named_recipes, settings_of
from kdyno.runs.experiment.resolve import experiment_of
from kdyno.runs.experiment.short import SHOWN, Piece, pieces, table

NAMED_ALONE = ("source", "image")
"""Keys whose values name a kernel, so that the name of a variant needs no key."""
PLAIN = "plain"
"""The recipe that changes nothing."""
HERE = "."
FILE = "ab.toml"
"""The name of the experiment in messages."""
MOST_NAME = 80
UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")
OUTER = "._+-"
SCHEMES = tuple(f"{kind}:" for kind in FETCHERS)
SOURCE_FIRST = re.compile(rf"(?:\.{{0,2}}/|\.{{1,2}}(?=[#,]|$)|~|{'|'.join(SCHEMES)})[^,]*")
"""Matches the start of a recipe that begins with a source: with the path of one, or with its kind."""


class NoRecipe(UserError):
    message = "`{text}` is neither a recipe nor a source"
    hint = (
        "pass a recipe, KEY=VALUE,..., {plain} or {named}; or a source, .#REVISION, ./DIRECTORY, "
        "git:DIRECTORY#REVISION or debian:PACKAGE, with or without a recipe after a comma"
    )


class BadRecipe(UserError):
    message = "`{text}`: {problems}"
    hint = (
        "use keys of a variant, which `kdyno schema experiment` and docs/formats.md list; machine, source and base "
        "configuration of all kernels are options: --machine TYPE, --source, --config"
    )


class SameRecipe(UserError):
    message = "`{first}` and `{second}` are the same recipe, so that there is nothing to compare"
    hint = "change one of them, or compare a kernel with itself by `kdyno selftest --aa`"


@dataclass(frozen=True)
class Options:
    """The options beside the recipes. An empty value or None is the default of an experiment file."""

    tests: tuple[str, ...] = ()
    """Tests, suites and workloads by name, and files of workloads."""
    blocks: int | str | None = None
    layouts: int | None = None
    margin: float | None = None
    lane: str | None = None
    machine: str = ""
    """[machine] in short form; the type may come first."""
    source: str = ""
    """The source of recipes that don't name one. Empty: the first source that another recipe names, else the directory
    if it is a kernel tree, else the source of the demo."""
    config: str | None = None


@dataclass(frozen=True)
class Side:
    """One recipe as the user wrote it."""

    text: str
    pieces: tuple[Piece, ...]
    """The pieces; a source at the beginning is one of them."""
    named: str = ""
    """The recipe that kdyno has, which the pieces change; empty: none."""

    @property
    def recipe(self) -> RecipeSpec:
        """The recipe, checked. Raises BadRecipe and NotShort."""
        content = table(self.pieces, RecipeSpec)
        try:
            recipe = RecipeSpec.model_validate(content)
            if not self.named:
                return recipe
            content = merge(settings_of(named_recipes()[self.named]), settings_of(recipe))
            return RecipeSpec.model_validate(content)
        except ValidationError as error:
            problem_text = "; ".join(problems(error, RecipeSpec, content))
            raise BadRecipe(text=self.text[:SHOWN], problems=problem_text) from None


def experiment_for(texts: Sequence[str], options: Options, base: Path) -> tuple[str, Experiment]:
    """Return the TOML text and the experiment. The first recipe is the baseline; relative paths start from `base`.

    Raises KdynoError for any mistake in the recipes and the options.
    """
    for argument in (*texts, *options.tests, options.machine, options.source, options.config or ""):
        require_text(argument)
    text = tomli_w.dumps(as_table(texts, options, base))
    return text, experiment_of(text, base / FILE)


def as_table(texts: Sequence[str], options: Options, base: Path) -> dict[str, Any]:
    """Return the content of the TOML text."""
    sides = [read_side(text) for text in texts]
    machine, settings = _machine(options, base)
    recipes = [_set_keys(knobs.located(side.recipe, base), side.recipe) for side in sides]
    source_name = options.source or next((recipe["source"] for recipe in recipes if "source" in recipe), "")
    is_built_here = machine.starts_kernels and any("image" not in recipe for recipe in recipes)
    source = _located_source(source_name or _default_source(base), base) if is_built_here else ""
    recipes = [
        {key: value for key, value in recipe.items() if (key, value) != ("source", source)} for recipe in recipes
    ]
    _require_different(texts, recipes)
    names = unique([name_of(side, base) for side in sides])
    return {
        "name": UNFIT.sub("-", "-vs-".join(names))[:MOST_NAME],
        **({"source": source} if source else {}),
        **({"config": CONFIG.located(options.config, base)} if options.config else {}),
        "baseline": names[0],
        **({"blocks": options.blocks} if options.blocks is not None else {}),
        **({"layouts": options.layouts} if options.layouts is not None else {}),
        "variants": dict(zip(names, recipes, strict=True)),
        **({"workload": workload} if (workload := _workload(options.tests, machine, base)) else {}),
        **({"machine": settings} if settings else {}),
        **({"judge": {"margin": options.margin}} if options.margin is not None else {}),
    }


def read_side(text: str) -> Side:
    """Read a recipe in short form: a source, pieces, or both; a recipe by name, with pieces or without; or `plain`.

    Raises NoRecipe and NotShort.
    """
    if text == PLAIN:
        return Side(text, ())
    name, _, remaining_text = text.partition(",")
    if name in named_recipes():
        return Side(text, tuple(pieces(remaining_text)), name)
    if match := SOURCE_FIRST.match(text):
        source, recipe_text = match[0], text[match.end() + 1 :]
        return Side(text, (Piece(source, "source", _spelled_source(source)), *pieces(recipe_text)))
    if "=" not in text:
        raise NoRecipe(text=text[:SHOWN], plain=PLAIN, named=", ".join(named_recipes()))
    return Side(text, tuple(pieces(text)))


def name_of(side: Side, base: Path) -> str:
    """Return the name of a variant: its source or its built kernel in a word, and keys with values, cut to MOST_NAME
    characters.
    """
    words = [_short_source(piece.value, base) if piece.key in NAMED_ALONE else _word(piece) for piece in side.pieces]
    return UNFIT.sub("-", "+".join([side.named, *words] if side.named else words)).strip(OUTER)[:MOST_NAME] or PLAIN


def _word(piece: Piece) -> str:
    key = piece.key.partition(".")[2] or piece.key
    return f"{key}-{piece.value.rstrip('/').rpartition('/')[2]}"


def unique(names: Sequence[str]) -> list[str]:
    """Return the names, with a number appended to each repetition."""
    different: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in different:
            number += 1
            candidate = f"{name[: MOST_NAME - len(f'-{number}')]}-{number}"
        different.append(candidate)
    return different


def _short_source(source: str, base: Path) -> str:
    """Return the revision, the package, or the name of the directory or file."""
    place, _, revision = source.partition("#")
    return revision or (base / place.rpartition(":")[2]).resolve().name


def _require_different(texts: Sequence[str], recipes: Sequence[Mapping[str, Any]]) -> None:
    for place, recipe in enumerate(recipes):
        if recipe in recipes[:place]:
            first = texts[recipes.index(recipe)]
            raise SameRecipe(first=first[:SHOWN], second=texts[place][:SHOWN])


def _spelled_source(text: str) -> str:
    """Return the source in full: `git:.#v6.12` for `.#v6.12`."""
    return f"git:{text}" if "#" in text and not text.startswith(SCHEMES) else text


def _located_source(text: str, base: Path) -> str:
    return SOURCE.located(_spelled_source(text), base) or ""


def _default_source(base: Path) -> str:
    """Return the directory if it is a kernel tree, else the source of the demo."""
    try:
        kernel_version(base, HERE)
    except NotAKernelTree:
        text = files("kdyno").joinpath("data", "experiments", "quickstart.toml").read_text(encoding="utf-8")
        return str(toml.parse(text)["source"])
    return HERE


def _machine(options: Options, base: Path) -> tuple[MachineSettings, dict[str, Any]]:
    """Return the machine, and the content of [machine]. Raises BadMachine and NotShort."""
    first, _, remaining_text = options.machine.partition(",")
    kind, short = (first, remaining_text) if first and "=" not in first else ("", options.machine)
    lane = f"lane={options.lane}" if options.lane else ""
    machine_pieces = [*([Piece(kind, "type", kind)] if kind else []), *pieces(short), *pieces(lane)]
    type_name = kind_named({piece.key: piece.value for piece in reversed(machine_pieces)})
    content = table(machine_pieces, settings_type(type_name))
    machine = read_machine(content, f"--machine {options.machine[:SHOWN] or type_name}")
    return machine, _set_keys(machine.located(base), machine)


def _workload(names: Sequence[str], machine: MachineSettings, base: Path) -> dict[str, Any]:
    """Return [workload] with these tests and programs. A name that is not a program is taken for a test, or for a path
    where the kernel runs its benchmarks itself.
    """
    if machine.runner == "kernel":
        return {"type": default_workload(machine.runner).type, "tests": list(names)} if names else {}
    own_programs = own_names()
    programs = [name for name in names if is_file(name) or name.rpartition("=")[2] in own_programs]
    tests = [name for name in names if name not in programs]
    if not programs:
        return {"tests": tests} if tests else {}
    use = [_absolute_use(name, base) for name in programs]
    return {"type": "programs", "use": use, **({"tests": tests} if tests else {})}


def _absolute_use(name: str, base: Path) -> str:
    use_name, equals, path = name.rpartition("=")
    return f"{use_name}{equals}{(base / Path(path).expanduser()).resolve()}" if is_file(path) else name


def _set_keys(located: Frozen, original: Frozen) -> dict[str, Any]:
    """Return the keys that the user set in a table, with absolute paths."""
    whole = located.model_dump(mode="json", exclude_unset=True, exclude_none=True, include=original.model_fields_set)
    return dict(whole)
