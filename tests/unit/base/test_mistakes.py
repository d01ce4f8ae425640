"""Mistakes in files that people write: each is told once, at its place, in words of the file and not of pydantic."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

import kdyno
from kdyno.base import toml
from kdyno.base.mistakes import PATTERNS, _models, first_fault, is_json, problems
from kdyno.boot.registry import MACHINES
from kdyno.kernel.delegation.plan_file import DelegationPlan
from kdyno.kernel.recipe import Recipe
from kdyno.measure.cycles.family import FamilyFile
from kdyno.measure.workload.definition import Definition
from kdyno.measure.workload.registry import WORKLOADS
from kdyno.runs.experiment.errors import BadExperiment
from kdyno.runs.experiment.models import ExperimentFile
from kdyno.runs.experiment.resolve import load_experiment
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


SAYS = {"first_fault", "is_json", "mistakes", "problems"}
"""What may be done with what pydantic found wrong; all other words of its are for programmers."""
VALIDATES = {"model_validate", "model_validate_json", "validate_json", "validate_python"}


def trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text())) for path in sorted(Path(kdyno.__file__).parent.rglob("*.py"))]


def names_in(node: ast.AST | None) -> set[str]:
    """The names in an expression, and those of the attributes that it takes."""
    inner = list(ast.walk(node)) if node else []
    names = {name.id for name in inner if isinstance(name, ast.Name)}
    return names | {name.attr for name in inner if isinstance(name, ast.Attribute)}


def is_of_pydantic(handler: ast.ExceptHandler, of: ast.Try) -> bool:
    """Return whether a handler may get a ValidationError, which is a ValueError: one before it may take that."""
    before = of.handlers[: of.handlers.index(handler)]
    if any("ValidationError" in names_in(other.type) for other in before):
        return False
    validates = any(VALIDATES & names_in(statement) for statement in of.body)
    caught = names_in(handler.type)
    return "ValidationError" in caught or (validates and (handler.type is None or bool(caught & {"ValueError"})))


def handled(tree: ast.Module) -> Iterator[tuple[str, list[ast.stmt]]]:
    """What is done with each ValidationError: its name, and the statements that may use it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            yield from (
                (handler.name, handler.body)
                for handler in node.handlers
                if handler.name and is_of_pydantic(handler, node)
            )
        elif isinstance(node, ast.FunctionDef):
            yield from (
                (given.arg, node.body) for given in node.args.args if "ValidationError" in names_in(given.annotation)
            )


def trespasses(tree: ast.Module) -> list[int]:
    """Lines that use a ValidationError otherwise than by asking base/mistakes.py for words."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    passes_on = {
        function.name
        for function in functions
        if any("ValidationError" in names_in(given.annotation) for given in function.args.args)
    }
    found = []
    for name, body in handled(tree):
        inner = [node for statement in body for node in ast.walk(statement)]
        allowed = {
            id(given)
            for node in inner
            if isinstance(node, ast.Call) and names_in(node.func) & (SAYS | passes_on)
            for given in node.args
        } | {id(node.cause) for node in inner if isinstance(node, ast.Raise)}
        found += [
            node.lineno for node in inner if isinstance(node, ast.Name) and node.id == name and id(node) not in allowed
        ]
    return found


def test_whoever_catches_what_pydantic_finds_wrong_says_it_in_words_of_kdyno() -> None:
    found = [f"{path}:{line}" for path, tree in trees() if path.name != "mistakes.py" for line in trespasses(tree)]
    assert found == []
    assert sum(1 for _, tree in trees() for _ in handled(tree)) > 25, "the test finds no handlers any more"


@pytest.mark.parametrize(
    "body",
    [
        "try:\n    A.model_validate(b)\nexcept ValidationError as error:\n    raise Bad(why=str(error)) from error",
        "try:\n    A.model_validate(b)\nexcept ValidationError as e:\n    raise Bad(why=e.errors()[0]['msg']) from e",
        "try:\n    A.model_validate(b)\nexcept ValueError as error:\n    raise Bad(why=f'{error}') from error",
        "def why(error: ValidationError) -> str:\n    return error.errors()[0]['msg']",
    ],
)
def test_what_quotes_pydantic_is_found(body: str) -> None:
    assert len(trespasses(ast.parse(body))) == 1


class Kind(BaseModel):
    kind: Literal["kind"]


class Other(BaseModel):
    kind: Literal["other"]


class Recorded(BaseModel, extra="forbid", strict=True):
    """Fields of most kinds that records have."""

    at: datetime
    samples: tuple[int, ...]
    names: frozenset[str]
    kind: Literal["a", "b"]
    of: Annotated[Kind | Other, Field(discriminator="kind")]


@pytest.mark.parametrize("value", [None, *VALUES, *({"kind": value} for value in (None, 1, "x"))])
def test_no_wrong_value_of_a_record_is_told_in_pydantics_words(value: Any) -> None:
    for table in ({}, value, *({name: value} for name in Recorded.model_fields)):
        for name in (None, *Recorded.model_fields):
            rest = {"at": datetime.now(UTC), "samples": (1,), "names": frozenset(), "kind": "a", "of": {"kind": "kind"}}
            given = table if name is None else rest | {name: value}
            try:
                Recorded.model_validate(given)
            except ValidationError as error:
                words = first_fault(error)
                assert words and not OF_PYDANTIC.search(words), words
    with pytest.raises(ValidationError) as caught:
        Recorded.model_validate_json("{")
    assert first_fault(caught.value).startswith("it is no JSON: ") and not is_json(caught.value)
