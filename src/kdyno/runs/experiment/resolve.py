"""Resolves an experiment file to an Experiment, without the state directory, a kernel or this host."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kdyno.base.mistakes import Mistake, first_fault, unfit
from kdyno.kernel import knobs
from kdyno.kernel.arch import ARCHES
from kdyno.kernel.knobs.origin import CONFIG, SOURCE
from kdyno.kernel.recipe import KconfigValue, RecipeSpec
from kdyno.measure.workload.named import training_load
from kdyno.measure.workload.registry import default_workload
from kdyno.runs.experiment.errors import (
    BadRecordedExperiment,
    LayoutOfBuiltKernel,
    NoBaseline,
    NotToConfirm,
    NoTuning,
    OneLayout,
    TooManyBoots,
    TooManyLayouts,
)
from kdyno.runs.experiment.file import ReadFile, parse_file, read_file
from kdyno.runs.experiment.models import MOST_RECORDED_BYTES, Experiment, confirmation_problem, too_many_boots
from kdyno.runs.experiment.plan import pilot_blocks
from kdyno.runs.experiment.tune import TuneConfig
from kdyno.runs.experiment.variants import NeededKconfig, expand, matrix_mistakes, resolve_recipes

NOT_OF_A_RUN = {"variants", "tune", "space", "search"}
"""Keys of the file that an Experiment has in another form, or doesn't have."""


def read_experiment(name: str) -> Experiment:
    """Read an experiment file, or for `-` the JSON of a recorded experiment from standard input.

    Raises BadRecordedExperiment, and what load_experiment raises.
    """
    if name != "-":
        return load_experiment(Path(name))
    content = sys.stdin.buffer.read(MOST_RECORDED_BYTES + 1)
    if len(content) > MOST_RECORDED_BYTES:
        raise BadRecordedExperiment(why=f"it is larger than {MOST_RECORDED_BYTES:,} bytes")
    try:
        experiment = Experiment.model_validate_json(content)
    except ValidationError as error:
        raise BadRecordedExperiment(why=first_fault(error)) from None
    for keys, reason in unfit(experiment.model_dump(mode="json")):
        raise BadRecordedExperiment(why=f"{'.'.join(map(str, keys))}: {reason}")
    return experiment


def load_experiment(path: Path) -> Experiment:
    """Read, check and expand an experiment file; relative paths in it start from its directory."""
    return resolve(read_file(path))


def experiment_of(text: str, path: Path) -> Experiment:
    """Resolve the text of an experiment file that would be at `path`; the file needn't exist. Raises KdynoError."""
    return resolve(parse_file(text, path))


def load_tuning(path: Path) -> tuple[Experiment, TuneConfig]:
    """Load an experiment and its table [tune]. Raises NoTuning, and what load_experiment raises."""
    file = read_file(path)
    if file.content.tune is None:
        raise NoTuning(path=path)
    return resolve(file), file.content.tune


def resolve(file: ReadFile) -> Experiment:
    """Return the experiment that a file describes; relative paths start from its directory. Raises KdynoError."""
    content, base = file.content, file.written.path.parent
    if wrong := [*matrix_mistakes(content.variants)]:
        raise file.written.refusal(wrong)
    variants = {name: knobs.located(spec, base) for name, spec in expand(content.variants).items()}
    _require_consistent(file, variants)
    settings: dict[str, Any] = {key: getattr(content, key) for key in content.model_fields_set - NOT_OF_A_RUN}
    if content.blocks == "auto":
        settings |= {"auto": True, "blocks": pilot_blocks(content.layouts)}
    is_set = content.model_fields_set.__contains__
    source = SOURCE.located(content.source or None, base) or ""
    own_base = ARCHES[content.machine.arch].base
    config = CONFIG.located(content.config, base) if is_set("config") else own_base
    workload = (content.workload if is_set("workload") else default_workload(content.machine.runner)).located(base)
    needs = workload.needs()
    machine = content.machine.located(base).at_least(needs, workload.cpus())
    load_of = cache(training_load)
    needed_kconfig: dict[str, KconfigValue] = {}
    if machine.starts_kernels:
        training_loads = [spec.profile.train for spec in variants.values() if spec.profile and spec.profile.train]
        needed_kconfig = reduce(or_, map(load_of, training_loads), needs).kconfig
    # A kernel that runs its benchmarks itself starts no program; those that are trained on one are of guests.
    own_kconfig = needed_kconfig if machine.runner == "agent" else {}
    own = NeededKconfig(own_kconfig, machine.needed_kconfig())
    recipes = resolve_recipes(variants, source, config, own, needed_kconfig, load_of)
    resolved_settings = {
        "source": source,
        "config": config,
        "workload": workload,
        "machine": machine,
        "variants": recipes,
    }
    return Experiment(**settings | resolved_settings)


def _require_consistent(file: ReadFile, variants: Mapping[str, RecipeSpec]) -> None:
    """Raise UserError if the parts of an experiment contradict each other, or one is missing."""
    content, written = file.content, file.written
    path, line_of, blocks = written.path, written.line_of, content.blocks
    if content.baseline not in variants:
        known = ", ".join(variants)
        raise NoBaseline(path=path, line=line_of("baseline"), baseline=content.baseline, known=known)
    if blocks != "auto" and content.layouts > blocks:
        raise TooManyLayouts(path=path, line=line_of("layouts"), layouts=content.layouts, blocks=blocks)
    if content.layouts == 1:
        raise OneLayout(path=path, line=line_of("layouts"))
    if problem := too_many_boots(len(variants), content.judge.most_blocks if blocks == "auto" else blocks):
        raise TooManyBoots(path=path, line=line_of("blocks"), why=problem)
    if content.confirm and (problem := confirmation_problem(content.machine)):
        raise NotToConfirm(path=path, line=line_of("confirm"), why=problem)
    if built_variants := [name for name, spec in variants.items() if spec.image is not None and content.layouts]:
        raise LayoutOfBuiltKernel(path=path, line=line_of("variants", built_variants[0]), variant=built_variants[0])
    is_built_here = any(spec.image is None for spec in variants.values())
    if content.machine.starts_kernels and not content.source and is_built_here:
        raise written.refusal([Mistake(("source",), ("source",), "missing", "")])
