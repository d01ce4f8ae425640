"""`kdyno ab`: from recipes in their short form, and a few options, to the experiment that they stand for.

That experiment is a text of TOML, which is checked as any other. Paths in it are absolute, so that it may lie anywhere.
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
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.resolve import experiment_of
from kdyno.runs.experiment.short import SHOWN, Piece, pieces, table

PLAIN = "plain"
"""The recipe that changes nothing."""
HERE = "."
FILE = "ab.toml"
"""What messages call the experiment."""
MOST_NAME = 80
UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")
OUTER = "._+-"
SCHEMES = tuple(f"{kind}:" for kind in FETCHERS)
SOURCE_FIRST = re.compile(rf"(?:\.{{0,2}}/|\.{{1,2}}(?=[#,]|$)|~|{'|'.join(SCHEMES)})[^,]*")
"""A recipe that begins with a source: with the path of one, or with its kind."""


class NoRecipe(UserError):
    message = "`{text}` names neither a recipe nor a source"
    hint = (
        "a recipe is KEY=VALUE,... or {plain}; a source is .#REVISION, ./DIRECTORY, git:DIRECTORY#REVISION or "
        "debian:PACKAGE, perhaps with a recipe after a comma"
    )


class BadRecipe(UserError):
    message = "`{text}`: {problems}"
    hint = "keys are those of a variant: `kdyno schema experiment` and docs/formats.md have them"


class SameRecipe(UserError):
    message = "`{first}` and `{second}` are one recipe: there is nothing to compare"
    hint = "`kdyno selftest --aa` compares a kernel with itself"


@dataclass(frozen=True)
class Options:
    """What is said beside the recipes; empty or None: as an experiment file has it that doesn't say."""

    tests: tuple[str, ...] = ()
    """Tests, suites and workloads by name, and files of workloads."""
    blocks: int | str | None = None
    layouts: int | None = None
    margin: float | None = None
    lane: str | None = None
    machine: str = ""
    """[machine] in its short form, perhaps with its type first."""
    source: str = ""
    """Of recipes that name none. Empty: the first that one of the others names, else the kernel tree that the directory
    is, else the demo's."""
    config: str | None = None


@dataclass(frozen=True)
class Side:
    """One of the recipes, as it was written."""

    text: str
    pieces: tuple[Piece, ...]
    """A source that it begins with is one of them."""

    @property
    def recipe(self) -> RecipeSpec:
        """Raises BadRecipe and NotShort."""
        written = table(self.pieces, RecipeSpec)
        try:
            return RecipeSpec.model_validate(written)
        except ValidationError as error:
            problem_text = "; ".join(problems(error, RecipeSpec, written))
            raise BadRecipe(text=self.text[:SHOWN], problems=problem_text) from None


def experiment_for(texts: Sequence[str], options: Options, base: Path) -> tuple[str, Experiment]:
    """The TOML and the experiment. The first recipe is the baseline; relative paths start from `base`.

    Raises KdynoError for whatever is wrong with what was written.
    """
    for written in (*texts, *options.tests, options.machine, options.source, options.config or ""):
        require_text(written)
    text = tomli_w.dumps(as_table(texts, options, base))
    return text, experiment_of(text, base / FILE)


def as_table(texts: Sequence[str], options: Options, base: Path) -> dict[str, Any]:
    """What the TOML says."""
    sides = [read_side(text) for text in texts]
    machine, settings = _machine(options, base)
    recipes = [_written(knobs.located(side.recipe, base), side.recipe) for side in sides]
    named = options.source or next((recipe["source"] for recipe in recipes if "source" in recipe), "")
    is_built_here = machine.starts_kernels and any("image" not in recipe for recipe in recipes)
    source = _located_source(named or _default_source(base), base) if is_built_here else ""
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
        **({"workload": workload} if (workload := _workload(options.tests, base)) else {}),
        **({"machine": settings} if settings else {}),
        **({"judge": {"margin": options.margin}} if options.margin is not None else {}),
    }


def read_side(text: str) -> Side:
    """A recipe in its short form: a source, pieces, or both; or `plain`. Raises NoRecipe and NotShort."""
    if text == PLAIN:
        return Side(text, ())
    if match := SOURCE_FIRST.match(text):
        source, rest = match[0], text[match.end() + 1 :]
        return Side(text, (Piece(source, "source", _spelled_source(source)), *pieces(rest)))
    if "=" not in text:
        raise NoRecipe(text=text[:SHOWN], plain=PLAIN)
    return Side(text, tuple(pieces(text)))


def name_of(side: Side, base: Path) -> str:
    """What a variant is called: its source in a word, and keys with their values, as far as a name can hold them."""
    words = [_short_source(piece.value, base) if piece.key == "source" else _word(piece) for piece in side.pieces]
    return UNFIT.sub("-", "+".join(words)).strip(OUTER)[:MOST_NAME] or PLAIN


def _word(piece: Piece) -> str:
    key = piece.key.partition(".")[2] or piece.key
    return f"{key}-{piece.value.rstrip('/').rpartition('/')[2]}"


def unique(names: Sequence[str]) -> list[str]:
    """The same names, with a number where one was there before."""
    different: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in different:
            number += 1
            candidate = f"{name[: MOST_NAME - len(f'-{number}')]}-{number}"
        different.append(candidate)
    return different


def _short_source(source: str, base: Path) -> str:
    """A revision, a package or the name of a directory or file."""
    place, _, revision = source.partition("#")
    return revision or (base / place.rpartition(":")[2]).resolve().name


def _require_different(texts: Sequence[str], recipes: Sequence[Mapping[str, Any]]) -> None:
    for place, recipe in enumerate(recipes):
        if recipe in recipes[:place]:
            first = texts[recipes.index(recipe)]
            raise SameRecipe(first=first[:SHOWN], second=texts[place][:SHOWN])


def _spelled_source(text: str) -> str:
    """`.#v6.12` is git's, in full."""
    return f"git:{text}" if "#" in text and not text.startswith(SCHEMES) else text


def _located_source(text: str, base: Path) -> str:
    return SOURCE.located(_spelled_source(text), base) or ""


def _default_source(base: Path) -> str:
    """The kernel tree that the directory is; else the demo's."""
    try:
        kernel_version(base, HERE)
    except NotAKernelTree:
        text = files("kdyno").joinpath("data", "experiments", "quickstart.toml").read_text(encoding="utf-8")
        return str(toml.parse(text)["source"])
    return HERE


def _machine(options: Options, base: Path) -> tuple[MachineSettings, dict[str, Any]]:
    """The machine, and what [machine] says of it. Raises BadMachine and NotShort."""
    first, _, rest = options.machine.partition(",")
    kind, short = (first, rest) if first and "=" not in first else ("", options.machine)
    lane = f"lane={options.lane}" if options.lane else ""
    of_machine = [*([Piece(kind, "type", kind)] if kind else []), *pieces(short), *pieces(lane)]
    named = kind_named({piece.key: piece.value for piece in reversed(of_machine)})
    machine = read_machine(table(of_machine, settings_type(named)), f"--machine {options.machine[:SHOWN]}")
    return machine, _written(machine.located(base), machine)


def _workload(names: Sequence[str], base: Path) -> dict[str, Any]:
    """[workload] with these tests and programs; what is no program is a test, or an error that names the nearest."""
    own = own_names()
    programs = [name for name in names if is_file(name) or name.rpartition("=")[2] in own]
    tests = [name for name in names if name not in programs]
    if not programs:
        return {"tests": tests} if tests else {}
    use = [_absolute_use(name, base) for name in programs]
    return {"type": "programs", "use": use, **({"tests": tests} if tests else {})}


def _absolute_use(name: str, base: Path) -> str:
    called, equals, where = name.rpartition("=")
    return f"{called}{equals}{(base / Path(where).expanduser()).resolve()}" if is_file(where) else name


def _written(located: Frozen, given: Frozen) -> dict[str, Any]:
    """What was said of a table, with its paths absolute."""
    whole = located.model_dump(mode="json", exclude_unset=True, exclude_none=True, include=given.model_fields_set)
    return dict(whole)
