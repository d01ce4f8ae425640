"""From a TOML file to an Experiment; every mistake is named with its line and what was probably meant."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, reduce
from operator import or_
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from kdyno.base import toml
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.mistakes import SHOWN, Mistake, in_words, meant, mistakes
from kdyno.boot.registry import MACHINES
from kdyno.kernel import knobs
from kdyno.kernel.knobs.origin import CONFIG, SOURCE
from kdyno.kernel.recipe import KconfigValue, Recipe
from kdyno.measure.guest.job import Load
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.measure.workload.definition import own_names
from kdyno.measure.workload.metrics import KINDS as METRIC_KINDS
from kdyno.measure.workload.programs import ProgramsWorkload
from kdyno.measure.workload.registry import WORKLOADS
from kdyno.run.experiment.models import MOST_RECORDED_BYTES, Experiment, ExperimentFile, too_many_boots
from kdyno.run.experiment.plan import pilot_blocks
from kdyno.run.experiment.toml_lines import line_of
from kdyno.run.experiment.tune import TuneConfig
from kdyno.run.experiment.variants import expand, matrix_mistakes, with_trainees

MOST_BYTES = 1_000_000
"""Of a file; a long one has ten thousand."""
KINDS: dict[str, dict[str, type[BaseModel]]] = {
    "machine": {name: kind.settings for name, kind in MACHINES.items()},
    "workload": dict(WORKLOADS),
}
"""Tables of an experiment whose keys depend on their `type`: by table and type, what may stand there."""
METRICS = ("workload", "metrics")
"""A table of several kinds, too: pydantic puts the kind of a metric after its name."""
NOT_OF_A_RUN = {"variants", "tune"}
"""Keys of the file that an Experiment has otherwise, or not at all."""


class NoExperiment(UserError):
    message = "can't read the experiment {path}: {why}"
    hint = "`kdyno init FILE` writes one to start from"


class NotToml(UserError):
    message = "{path}: not TOML: {why}"
    hint = "see docs/formats.md for what an experiment looks like"


class BadExperiment(UserError):
    message = "{problems}"
    hint = "see docs/formats.md, or `kdyno schema experiment` for editors"


class NoTrainingLoad(UserError):
    message = "nothing can be trained on {named}: its workload (`{type}`) has nothing that the emulated PMU counts"
    hint = "name an experiment whose workload has tests, or programs with an [operation]; or name tests"


class OneProgramTwice(UserError):
    message = "`train` has the program {program} twice"
    hint = "leave out one of the files, or give one of the workloads another `name`"


class NoBaseline(UserError):
    message = "{path}:{line}: the baseline {baseline} is not a variant"
    hint = "variants: {known}"


class TooManyLayouts(UserError):
    message = "{path}:{line}: {layouts} layouts need as many blocks, but the experiment has {blocks}"
    hint = "each block boots one layout: set blocks = {layouts} or more"


class TooManyBoots(UserError):
    message = "{path}:{line}: {why}"
    hint = "make several experiments of it, or take fewer blocks or variants"


class OneLayout(UserError):
    message = "{path}:{line}: one layout says nothing about how much layouts differ"
    hint = "set layouts = 6 or more; or leave it out, and use `layout_seed = SEED` in a variant for one link order"


class LayoutOfBuiltKernel(UserError):
    message = "{path}:{line}: variant {variant} is a built kernel, which has the one link order that it was built with"
    hint = "leave `layouts` out: verdicts are then about these images, one link order each"


class NoTuning(UserError):
    message = "{path} has no table [tune]"
    hint = "it names what a file may be compiled with: see docs/tuning.md"


class BadRecordedExperiment(UserError):
    message = "standard input is not an experiment as a run records it: {why}"
    hint = "`kdyno show RUN --reproduce` prints one"


def read_experiment(named: str) -> Experiment:
    """An experiment file, or for `-` the JSON of a recorded experiment from standard input."""
    if named != "-":
        return load_experiment(Path(named))
    written = sys.stdin.buffer.read(MOST_RECORDED_BYTES + 1)
    if len(written) > MOST_RECORDED_BYTES:
        raise BadRecordedExperiment(why=f"it is larger than {MOST_RECORDED_BYTES:,} bytes")
    try:
        experiment = Experiment.model_validate_json(written)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise BadRecordedExperiment(
            why=": ".join(filter(None, [".".join(map(str, first["loc"])), in_words(first)]))
        ) from None
    for keys, why in _unfit(experiment.model_dump(mode="json")):
        raise BadRecordedExperiment(why=f"{'.'.join(map(str, keys))}: {why}")
    return experiment


class UnknownVariant(UserError):
    message = "the experiment has no variant {name}"
    hint = "variants: {known}"


def only_variants(experiment: Experiment, names: Sequence[str]) -> Experiment:
    """The experiment with only the variants that are named; with all of them if none is."""
    for name in names:
        if name not in experiment.variants:
            raise UnknownVariant(name=name, known=", ".join(experiment.variants))
    chosen = {name: recipe for name, recipe in experiment.variants.items() if not names or name in names}
    return experiment.model_copy(update={"variants": chosen})


def load_experiment(path: Path) -> Experiment:
    """Read, check and expand an experiment file; relative paths in it start from its directory."""
    return _expanded(path, *_parsed(path))


def experiment_of(text: str, path: Path) -> Experiment:
    """The experiment that a file of this text would be there; there needs to be none."""
    return _expanded(path, text, _checked(path, text))


def load_tuning(path: Path) -> tuple[Experiment, TuneConfig]:
    """The same, with what it says of tuning. Raises NoTuning."""
    text, spec = _parsed(path)
    if spec.tune is None:
        raise NoTuning(path=path)
    return _expanded(path, text, spec), spec.tune


def _parsed(path: Path) -> tuple[str, ExperimentFile]:
    """The text, and what it says."""
    try:
        text = read_whole(path, MOST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise NoExperiment(path=path, why=getattr(error, "strerror", None) or "not UTF-8") from error
    return text, _checked(path, text)


def _checked(path: Path, text: str) -> ExperimentFile:
    """What the text of an experiment file says."""
    try:
        written = toml.parse(text)
    except ValueError as error:
        raise NotToml(path=path, why=error) from error
    for keys, why in _unfit(written):
        raise _bad(path, text, [Mistake(keys, keys, "", why)])
    try:
        return ExperimentFile.model_validate(written)
    except ValidationError as error:
        raise _bad(path, text, mistakes(error, written, _keys)) from None


def _bad(path: Path, text: str, found: Sequence[Mistake]) -> BadExperiment:
    problems = [_problem(path, text, mistake) for mistake in found[:SHOWN]]
    more = [f"... and {len(found) - SHOWN:,} more"] if len(found) > SHOWN else []
    return BadExperiment(problems="\n".join([*problems, *more]))


def _expanded(path: Path, text: str, spec: ExperimentFile) -> Experiment:
    if wrong := [*matrix_mistakes(spec.variants)]:
        raise _bad(path, text, wrong)
    recipes = {name: knobs.located(recipe, path.parent) for name, recipe in expand(spec.variants).items()}
    if spec.baseline not in recipes:
        line = line_of(text, ("baseline",))
        raise NoBaseline(path=path, line=line, baseline=spec.baseline, known=", ".join(recipes))
    settings: dict[str, Any] = {key: getattr(spec, key) for key in spec.model_fields_set - NOT_OF_A_RUN}
    if spec.blocks == "auto":
        settings |= {"auto": True, "blocks": pilot_blocks(spec.layouts)}
    elif spec.layouts > spec.blocks:
        line = line_of(text, ("layouts",))
        raise TooManyLayouts(path=path, line=line, layouts=spec.layouts, blocks=spec.blocks)
    if spec.layouts == 1:
        raise OneLayout(path=path, line=line_of(text, ("layouts",)))
    if why := too_many_boots(len(recipes), spec.judge.most_blocks if spec.blocks == "auto" else spec.blocks):
        raise TooManyBoots(path=path, line=line_of(text, ("blocks",)), why=why)
    if given := [name for name, recipe in recipes.items() if recipe.image is not None and spec.layouts]:
        raise LayoutOfBuiltKernel(path=path, line=line_of(text, ("variants", given[0])), variant=given[0])
    is_built_here = any(recipe.image is None for recipe in recipes.values())
    if spec.machine.starts_kernels and not spec.source and is_built_here:
        raise _bad(path, text, [Mistake(("source",), ("source",), "missing", "")])
    settings["source"] = SOURCE.located(spec.source or None, path.parent) or ""
    settings["config"] = CONFIG.located(spec.config, path.parent)
    workload = settings["workload"] = spec.workload.located(path.parent)
    needs = workload.needs()
    settings["machine"] = spec.machine.located(path.parent).at_least(needs.memory_mb, needs.cpus)
    load_of = cache(training_load)
    if spec.machine.starts_kernels:
        trained_on = [recipe.profile.train for recipe in recipes.values() if recipe.profile and recipe.profile.train]
        needed = reduce(or_, (load_of(train).kconfig for train in trained_on), dict(needs.kconfig))
        recipes = {name: _with_kconfig(recipe, needed) for name, recipe in recipes.items()} if needed else recipes
    return Experiment(**settings, variants=with_trainees(recipes, settings["source"], settings["config"], load_of))


def _with_kconfig(recipe: Recipe, needed: Mapping[str, KconfigValue]) -> Recipe:
    """The recipe with what workloads need; what the recipe says itself counts more. A built kernel stays as it is."""
    if recipe.image is not None:
        return recipe
    return recipe.model_copy(update={"kconfig": {**needed, **recipe.kconfig}})


def training_load(train: tuple[str, ...]) -> Load:
    """What a profile is trained on: tests, suites and own workloads by name, and the workloads of experiment files.

    Raises NoTrainingLoad and OneProgramTwice, and what reading an experiment raises.
    """
    loads = [_load_of(name) for name in train]
    programs = [program for load in loads for program in load.programs]
    for program in programs:
        if sum(other.name == program.name for other in programs) > 1:
            raise OneProgramTwice(program=program.name)
    return Load(
        tests=tuple(dict.fromkeys(test for load in loads for test in load.tests)),
        params=reduce(or_, (load.params for load in loads), {}),
        programs=tuple(programs),
        packages=tuple(dict.fromkeys(package for load in loads for package in load.packages)),
        unpack=reduce(or_, (load.unpack for load in loads), {}),
        memory_mb=max((load.memory_mb for load in loads), default=0),
        kconfig=reduce(or_, (load.kconfig for load in loads), {}),
    )


def _load_of(named: str) -> Load:
    workload: WorkloadSettings
    if named.endswith(".toml"):
        _, spec = _parsed(Path(named))
        workload = spec.workload.located(Path(named).parent)
    elif named in own_names():
        workload = ProgramsWorkload(use=(named,)).located(Path())
    else:
        return Load(tests=(named,))
    load = workload.load()
    if not load.names:
        raise NoTrainingLoad(named=named, type=workload.type)
    return load


def _unfit(written: Any) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """The keys of values that nothing can take, wherever they stand, and why."""
    left: list[tuple[tuple[int | str, ...], Any]] = [((), written)]
    while left:
        keys, value = left.pop()
        if isinstance(value, dict):
            left += [((*keys, key), inner) for key, inner in value.items()]
            value = "".join(value)
        elif isinstance(value, list | tuple):
            left += [((*keys, place), inner) for place, inner in enumerate(value)]
        if isinstance(value, str) and "\0" in value:
            yield keys, "a NUL character, which no name, path or word can hold"
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            yield keys, "a number of more than 64 bits"


def _problem(path: Path, text: str, mistake: Mistake) -> str:
    """One line for one mistake: file:line: what, and the nearest thing that would have been right."""
    keys, kind, location = mistake.keys, mistake.kind, mistake.location
    place = f"{path}:{line_of(text, keys)}"
    name = ".".join(str(key) for key in keys)[: toml.KEY_SHOWN]
    if kind == "extra_forbidden":
        known = _known_keys(location[:-1])
        return f"{place}: unknown key `{name}`{meant(str(location[-1]), known)}"
    if kind == "union_tag_invalid" and name in KINDS:
        place = f"{path}:{line_of(text, (*keys, 'type'))}"
        return f"{place}: `{name}`: there is no such type; there are {', '.join(KINDS[name])}"
    if kind == "missing":
        return f"{place}: `{name}` is missing"
    return f"{place}: `{name}`: {mistake.words}"


def _keys(location: Sequence[int | str]) -> tuple[int | str, ...]:
    """The location without the kinds of tables of several kinds, whose names keys may have, too."""
    kindless = (location[0], *location[2:]) if location and location[0] in KINDS else tuple(location)
    if kindless[:2] == METRICS and len(kindless) > 3:
        kindless = (*kindless[:3], *kindless[4:])
    return kindless


def _known_keys(location: Sequence[int | str]) -> list[str]:
    """The keys that the model at this place of an ExperimentFile knows."""
    here: Any = ExperimentFile
    if location and location[0] in KINDS:
        table, kind, *location = location
        here = KINDS[str(table)][str(kind)]
        if (table, *location[:1]) == METRICS and len(location) > 2:
            return [field.alias or name for name, field in METRIC_KINDS[str(location[2])].model_fields.items()]
    for step in location:
        if isinstance(here, type) and issubclass(here, BaseModel):
            here = _without_none(here.model_fields[str(step)].annotation)
        else:
            here = get_args(here)[1] if get_origin(here) is dict else None
    return list(here.model_fields) if isinstance(here, type) and issubclass(here, BaseModel) else []


def _without_none(annotation: Any) -> Any:
    """The type behind `TYPE | None`."""
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
    return kinds[0] if NoneType in get_args(annotation) and len(kinds) == 1 else annotation
