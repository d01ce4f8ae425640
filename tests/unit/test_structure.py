"""What may import what, read from the imports themselves: also from those in functions and for type checking only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from kdyno.cli.verbs import VERBS

SOURCE = Path(__file__).parents[2] / "src" / "kdyno"
FILES = sorted(SOURCE.rglob("*.py"))
UNDER_THE_JUDGE = ("kdyno.judge", "kdyno.arrays", "kdyno.measurement", "kdyno.text", "kdyno.errors", "kdyno.frozen")
NOT_DECIDING = ("diagnostics", "planning", "checks")
KINDS = {
    "machine": {"QemuConfig", "FakeConfig", "QemuMachine", "FakeMachine"},
    "workload": {"LmbenchWorkload", "CommandWorkload"},
}
"""By package: what only the package itself may ask for."""


def name_of(file: Path) -> str:
    parts = ("kdyno", *file.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name_of(file) for file in FILES}


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imports(file: Path) -> Iterator[str]:
    """The modules of kdyno that a file imports anywhere."""
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and node.level == 0, f"{file}:{node.lineno}: a relative import"
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                if module in MODULES or node.module in MODULES:
                    yield module if module in MODULES else node.module


def lies_in(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def of_package(name: str) -> list[Path]:
    files = sorted((SOURCE / name).rglob("*.py"))
    assert files, f"there is no package {name}"
    return files


def strays(files: list[Path], *allowed: str) -> list[str]:
    """The imports of kdyno's modules that lie in none of the packages."""
    return [
        f"{name_of(file)} -> {module}" for file in files for module in imports(file) if not lies_in(module, *allowed)
    ]


def test_the_judge_stands_on_nothing_but_the_words_of_measuring() -> None:
    assert strays(of_package("judge"), *UNDER_THE_JUDGE) == []


def test_what_decides_a_verdict_imports_nothing_that_only_doubts_plans_or_checks() -> None:
    deciding = sorted((SOURCE / "judge").glob("*.py"))
    side = [f"kdyno.judge.{package}" for package in NOT_DECIDING]
    assert all((SOURCE / "judge" / package).is_dir() for package in NOT_DECIDING)
    assert [(name_of(file), module) for file in deciding for module in imports(file) if lies_in(module, *side)] == []


def test_planning_a_run_needs_no_diagnostics() -> None:
    modules = [module for file in of_package("judge/planning") for module in imports(file)]
    assert not [module for module in modules if lies_in(module, "kdyno.judge.diagnostics", "kdyno.judge.checks")]


def test_every_module_that_is_shipped_can_be_reached_from_a_command() -> None:
    """What only tests and tools call lies with them."""
    imported = {name_of(file): set(imports(file)) for file in FILES}
    reached: set[str] = set()
    new = {"kdyno.__main__", *(f"kdyno.cli.{verb.replace('-', '_')}" for verb in VERBS)}
    while new:
        module = new.pop()
        reached |= {module, module.rpartition(".")[0]}
        new |= imported[module] - reached
    assert sorted(set(imported) - reached) == []


def test_only_the_command_line_imports_the_report() -> None:
    importers = {name_of(file) for file in FILES if any(lies_in(module, "kdyno.report") for module in imports(file))}
    assert [name for name in sorted(importers) if not lies_in(name, "kdyno.report", "kdyno.cli")] == []


def test_only_the_command_line_and_the_list_of_schemas_import_the_search_which_goes_around_the_line() -> None:
    importers = {name_of(file) for file in FILES if any(lies_in(module, "kdyno.search") for module in imports(file))}
    allowed = ("kdyno.search", "kdyno.cli", "kdyno.schemas")
    assert [name for name in sorted(importers) if not lies_in(name, *allowed)] == []


def test_a_reader_of_foreign_files_knows_nothing_of_how_they_are_put_together_or_judged() -> None:
    glue = {f"kdyno.foreign.{name}" for name in ("assemble", "gathered", "programs", "rows", "summaries", "caveats")}
    modules = {module for file in of_package("foreign/readers") for module in imports(file)}
    assert not modules & glue
    assert not [module for module in modules if lies_in(module, "kdyno.judge", "kdyno.verdicts")]


def test_packages_do_not_import_each_other_in_a_circle() -> None:
    below: dict[str, set[str]] = {}
    for file in FILES:
        own = name_of(file).split(".")[1:2]
        for module in imports(file):
            other = module.split(".")[1:2]
            if own and other and own != other:
                below.setdefault(own[0], set()).add(other[0])
    assert below
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


@pytest.mark.parametrize("package", KINDS)
def test_only_machines_and_workloads_ask_of_what_kind_they_are(package: str) -> None:
    questions = []
    for file in FILES:
        if lies_in(name_of(file), f"kdyno.{package}"):
            continue
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                parts = list(ast.walk(node.args[1]))
                kinds = {part.id for part in parts if isinstance(part, ast.Name)}
                kinds |= {part.attr for part in parts if isinstance(part, ast.Attribute)}
                questions += [f"{name_of(file)}:{node.lineno}: {kind}" for kind in sorted(kinds & KINDS[package])]
    assert questions == []


WRITERS = ("kdyno.terminal", "kdyno.line.bootone")
"""Who may write to standard output and standard error: the first cleans what it writes, the second is a guest's."""


def test_only_one_module_writes_to_the_terminal() -> None:
    """So that nothing that is said can be forgotten to be cleaned."""
    strays = []
    for file in FILES:
        if name_of(file) in WRITERS:
            continue
        for node in ast.walk(parsed(file)):
            match node:
                case ast.Call(func=ast.Name(id="print" | "Console" | "input" as name)):
                    strays.append(f"{name_of(file)}:{node.lineno}: {name}()")
                case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr" | "__stdout__" | "__stderr__"):
                    strays.append(f"{name_of(file)}:{node.lineno}: sys.{node.attr}")
                case ast.Call(func=ast.Attribute(attr="basicConfig" | "StreamHandler" | "captureWarnings" as name)):
                    strays.append(f"{name_of(file)}:{node.lineno}: {name}()")
                case ast.ImportFrom(module="sys"):
                    strays.append(f"{name_of(file)}:{node.lineno}: from sys import")
    assert strays == []
