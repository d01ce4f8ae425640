"""Mistakes in files that people write: each is told once, at its place, in words of the file and not of pydantic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from kdyno.base import toml
from kdyno.base.mistakes import PATTERNS, _models, problems
from kdyno.boot.registry import MACHINES
from kdyno.kernel.delegation.plan_file import DelegationPlan
from kdyno.kernel.recipe import Recipe
from kdyno.measure.cycles.family import FamilyFile
from kdyno.measure.workload.definition import Definition
from kdyno.measure.workload.registry import WORKLOADS
from kdyno.run.experiment.errors import BadExperiment
from kdyno.run.experiment.models import ExperimentFile
from kdyno.run.experiment.resolve import load_experiment
from tests.unit.experiment_files import MINIMAL, written

WRITTEN = (
    *(ExperimentFile, Definition, FamilyFile, DelegationPlan),
    *(kind.settings for kind in MACHINES.values()),
    *WORKLOADS.values(),
)
"""What the files that people write are read as."""
VALUES: tuple[Any, ...] = (
    *("", "\0 x/", "y" * 30_000, True, -1, 1.5, 10**18, float("inf"), float("nan")),
    *([], [{}], [""], ["\0 "] * 6000, {}, {"": {}}, {"x": "\0"}, {"\0 ": -1}, {"type": "nothing"}),
)
OF_PYDANTIC = re.compile(r"(?i)\b(input|string|tuple|dictionary|value|list|keys?) should\b|valid|pattern '|instance of")


def models(model: type[BaseModel], known: dict[type[BaseModel], None]) -> dict[type[BaseModel], None]:
    """The model, and all that its fields may hold."""
    if model not in known:
        known[model] = None
        for field in model.model_fields.values():
            for inner in _models(field.annotation):
                models(inner, known)
    return known


def patterns(schema: Any) -> Iterator[str]:
    """All patterns in a JSON schema, of keys too."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        yield from schema.get("patternProperties", {})
        schema = list(schema.values())
    if isinstance(schema, list):
        for inner in schema:
            yield from patterns(inner)


@pytest.mark.parametrize("model", WRITTEN)
def test_every_pattern_that_a_text_must_match_has_words(model: type[BaseModel]) -> None:
    assert set(patterns(model.model_json_schema())) <= set(PATTERNS)


@pytest.mark.parametrize("model", WRITTEN)
def test_no_wrong_value_of_any_key_is_told_in_pydantics_words(model: type[BaseModel]) -> None:
    for inner in models(model, {}):
        for name, field in inner.model_fields.items():
            for value in VALUES:
                table = {field.alias or name: value}
                try:
                    inner.model_validate(table)
                except ValidationError as error:
                    for line in problems(error, inner, table):
                        assert not OF_PYDANTIC.search(line), (inner, line)


@pytest.mark.parametrize(
    ("addition", "line", "words"),
    [
        (
            'kconfig = { A = [1], B = "x" }\n',
            6,
            "`variants.plain.kconfig.A`: a text in quotation marks is expected, or ",
        ),
        ("sysctl = { swappiness = 1 }\n", 6, "`variants.plain.sysctl.swappiness`: a setting is expected as sysctl"),
        ("matrix = { opt = [{}, 'O2'] }\n", 6, "`variants.plain.matrix.opt.0`: a text in quotation marks is expected"),
        ("matrix = { opt = ['O9'], march = ['a', 'b', 'c'] }\n", 6, "`variants.plain.matrix.opt.0`: 'O1', 'O2', "),
        (
            "[variants.plain.matrix]\nmarch = ['a', 'b', 'c']\ntoolchain = ['gcc', 'tcc']\n",
            8,
            "`variants.plain.matrix.t",
        ),
        ("patches = 5\n", 6, "`variants.plain.patches`: a list [ ... ] is expected"),
        ("patches = [5]\n", 6, "`variants.plain.patches.0`: a text in quotation marks is expected"),
        ("toolchain = 'tcc'\n", 6, "`variants.plain.toolchain`: a compiler is expected: gcc, clang, or"),
        ("delegation = 5\n", 6, "`variants.plain.delegation`: a"),
        ("[variants.'a b']\n", 6, "`variants.a b`: a name is expected: letters, digits and . _ + -"),
        ("[machine]\nmemory_mb = 5\n", 7, "`machine.memory_mb`: it must be at least 64"),
        ("[machine]\nshare = 5\n", 7, "`machine.share`: a path in quotation marks is expected"),
        (
            "[workload]\ntype = 'command'\ncommand = ['x']\nmetrics.a = 'b'\n",
            9,
            "`workload.metrics.a`: a table is expected",
        ),
        ("[machine]\ntype = 'local'\ncpus = []\n", 8, "`machine.cpus`: it must have at least 1 entry"),
    ],
)
def test_a_mistake_is_told_once_in_words_at_its_place(tmp_path: Path, addition: str, line: int, words: str) -> None:
    with pytest.raises(BadExperiment) as caught:
        load_experiment(written(tmp_path, MINIMAL + addition))
    [told] = str(caught.value).splitlines()
    assert f":{line}: {words}" in told


def test_a_byte_order_mark_is_no_part_of_a_file_and_moves_no_line(tmp_path: Path) -> None:
    assert toml.parse("\ufeffa = 1\n") == {"a": 1}
    assert load_experiment(written(tmp_path, "\ufeff" + MINIMAL)) == load_experiment(written(tmp_path, MINIMAL))
    with pytest.raises(BadExperiment, match=r":1: `name`: a text in quotation marks"):
        load_experiment(written(tmp_path, "\ufeffname = 5\r\n" + MINIMAL.split("\n", 1)[1]))


def test_a_text_of_several_kinds_of_lines_keeps_its_numbers(tmp_path: Path) -> None:
    text = MINIMAL + "# a line \u0085 and more of it \u2028 on one line\n" + "opt = 'O9'\n"
    with pytest.raises(BadExperiment, match=r":7: `variants\.plain\.opt`"):
        load_experiment(written(tmp_path, text))


def test_a_key_that_is_called_as_a_kind_of_value_keeps_its_name() -> None:
    table: dict[str, Any] = {"kconfig": {"str": [], "int": {}}}
    with pytest.raises(ValidationError) as caught:
        Recipe.model_validate(table)
    assert [line.split(":")[0] for line in problems(caught.value, Recipe, table)] == ["`kconfig.str`", "`kconfig.int`"]
