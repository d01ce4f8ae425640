"""The published schema of the experiment file against the loader: an editor must not mark what `kdyno run` takes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from markdown_it import MarkdownIt
from pydantic import ValidationError

from kdyno.cli.schemas import schema
from kdyno.measure.workload.named import training_load
from kdyno.runs.experiment.models import ExperimentFile

ROOT = Path(__file__).parents[3]
NEEDED = {"name": "small", "source": "linux", "baseline": "plain", "variants": {"plain": {}}}
EXPERIMENTS_IN_DOCS = 14
"""At least: a smaller number means that they are no longer found."""


@cache
def published() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema("experiment"))


def is_loaded(table: dict[str, Any]) -> bool:
    try:
        ExperimentFile.model_validate(table)
    except ValidationError:
        return False
    return True


def complaints(table: dict[str, Any]) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in published().iter_errors(table)]


def blocks(document: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The TOML of a document, with the place of each."""
    for token in MarkdownIt("commonmark").parse(document.read_text(encoding="utf-8")):
        if token.type == "fence" and token.info.strip() == "toml" and token.map:
            yield f"{document.relative_to(ROOT)}:{token.map[0] + 1}", tomllib.loads(token.content)


def whole(table: dict[str, Any]) -> dict[str, Any] | None:
    """The experiment that a block is, or is a part or a variant of; None if it is something else."""
    candidates = (table, {**NEEDED, **table}, {**NEEDED, "variants": {"plain": table}})
    return next(filter(is_loaded, candidates), None)


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.toml")), ids=lambda path: path.stem)
def test_the_schema_accepts_every_experiment_of_the_repository(path: Path) -> None:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    assert is_loaded(table)
    assert complaints(table) == []


def experiments_in_documents() -> dict[str, dict[str, Any]]:
    """Return the experiments by the places where the documents show them."""
    documents = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    shown = {place: whole(table) for document in documents for place, table in blocks(document)}
    return {place: table for place, table in shown.items() if table is not None}


def test_the_schema_accepts_every_experiment_of_the_documents() -> None:
    experiments = experiments_in_documents()
    assert len(experiments) >= EXPERIMENTS_IN_DOCS
    assert {place: found for place, table in experiments.items() if (found := complaints(table))} == {}


def test_every_load_that_the_documents_train_on_is_counted() -> None:
    for place, experiment in experiments_in_documents().items():
        for name, variant in experiment["variants"].items():
            train = variant.get("profile", {}).get("train", ())
            loads = (train,) if isinstance(train, str) else tuple(train)
            if not any(load.startswith("./") for load in loads):  # a file of the reader's
                assert not loads or training_load(loads).names, f"{place}: {name}"


@pytest.mark.parametrize(
    "part",
    [
        {"variants": {"plain": {"profile": {"use": "order", "train": "lmbench"}}}},
        {"variants": {"plain": {"profile": {"use": ["autofdo", "order"], "train": ["lat_pipe", "lmbench"]}}}},
        {"variants": {"plain": {"delegation": "plan.toml"}}},
        {"variants": {"plain": {"delegation": {"rule": []}}}},
        {"blocks": "auto"},
        {"machine": {}},
        {"machine": {"lane": "wall"}},
        {"machine": {"type": "local"}},
        {"workload": {}},
        {"workload": {"iterations": 3}},
        {"workload": {"type": "programs", "use": ["redis"]}},
    ],
    ids=str,
)
def test_the_schema_accepts_short_forms(part: dict[str, Any]) -> None:
    table = {**NEEDED, **part}
    assert is_loaded(table)
    assert complaints(table) == []


@pytest.mark.parametrize(
    "part",
    [
        {"variants": {"plain": {"profile": {"use": "ordre"}}}},
        {"variants": {"plain": {"profile": {"use": "order", "train": 3}}}},
        {"machine": {"type": "qumu"}},
        {"machine": {"type": "local", "platform": "q35"}},
        {"machine": {"recording": "boots"}},
        {"workload": {"command": ["true"]}},
    ],
    ids=str,
)
def test_the_schema_refuses_what_the_loader_refuses(part: dict[str, Any]) -> None:
    table = {**NEEDED, **part}
    assert not is_loaded(table)
    assert complaints(table)
