"""What may import what, read from the imports themselves: also from those in functions and for type checking only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from kdyno.base.lanes import LANES
from kdyno.boot.registry import MACHINES
from kdyno.cli.schemas import FORMATS
from kdyno.cli.verbs import VERBS
from kdyno.measure.workload.registry import WORKLOADS

ROOT = Path(__file__).parents[2]
ARCHITECTURE = ROOT / "docs" / "architecture.md"
SOURCE = ROOT / "src" / "kdyno"
FILES = sorted(SOURCE.rglob("*.py"))
WORDS_OF_MEASURING = tuple(f"kdyno.base.{name}" for name in ("arrays", "measurement", "text", "errors", "frozen"))
NOT_DECIDING = ("diagnostics", "planning", "checks")
KINDS = {
    "boot": {
        *(kind.settings.__name__ for kind in MACHINES.values()),
        *(kind.machine.__name__ for kind in MACHINES.values()),
    },
    "measure.workload": {workload.__name__ for workload in WORKLOADS.values()},
}
"""By package: what only the package itself may ask for."""


def name_of(file: Path) -> str:
    parts = ("kdyno", *file.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name_of(file) for file in FILES} - {"kdyno"}


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
    assert strays(of_package("judge/stats"), "kdyno.judge.stats", *WORDS_OF_MEASURING) == []


def test_what_decides_a_verdict_imports_nothing_that_only_doubts_plans_or_checks() -> None:
    deciding = sorted((SOURCE / "judge" / "stats").glob("*.py"))
    side = [f"kdyno.judge.stats.{package}" for package in NOT_DECIDING]
    assert all((SOURCE / "judge" / "stats" / package).is_dir() for package in NOT_DECIDING)
    assert [(name_of(file), module) for file in deciding for module in imports(file) if lies_in(module, *side)] == []


def test_planning_a_run_needs_no_diagnostics() -> None:
    modules = [module for file in of_package("judge/stats/planning") for module in imports(file)]
    assert not [
        module for module in modules if lies_in(module, "kdyno.judge.stats.diagnostics", "kdyno.judge.stats.checks")
    ]


def test_every_module_that_is_shipped_can_be_reached_from_a_command() -> None:
    """What only tests and tools call lies with them."""
    imported = {name_of(file): set(imports(file)) for file in FILES}
    imported["kdyno.cli.schemas"] |= {row.type.partition(":")[0] for row in FORMATS.values()}
    reached: set[str] = set()
    new = {"kdyno.__main__", "kdyno.cli.api", *(f"kdyno.cli.{verb.replace('-', '_')}" for verb in VERBS)}
    while new:
        module = new.pop()
        reached.add(module)
        new |= ({*imported[module], *packages_of(module)} & set(imported)) - reached
    assert sorted(set(imported) - reached) == []


def packages_of(module: str) -> list[str]:
    """`kdyno` and `kdyno.runs` of `kdyno.runs.boots`."""
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def rooms() -> dict[str, set[str]]:
    """What each room may import: the table in docs/architecture.md, from the lowest to the highest."""
    text = ARCHITECTURE.read_text(encoding="utf-8").partition("\n## Rooms\n")[2].partition("\n## ")[0]
    table: dict[str, set[str]] = {}
    for room, may in re.findall(r"^\| `(\w+)/` \|.*\| ([a-z, ]+) \|$", text, re.MULTILINE):
        named = {"nothing": set(), "all above": set(table)}.get(may, set(may.split(", ")))
        assert named <= set(table), f"{room} may import {named - set(table)}, which isn't above it"
        table[room] = named
    return table


def test_a_room_imports_what_the_architecture_says_and_nothing_else() -> None:
    table = rooms()
    assert set(table) == {file.relative_to(SOURCE).parts[0] for file in FILES if file.parent != SOURCE}
    assert [stray for room, may in table.items() for stray in room_strays(room, may)] == []


def test_the_top_of_the_package_has_at_most_17_entries_and_83_arrows() -> None:
    """What one has to know before anything else. An arrow is an entry that imports another."""
    modules = {name_of(file): {top_entry(module) for module in imports(file)} for file in FILES}
    arrows = {(top_entry(name), other) for name, others in modules.items() for other in others - {top_entry(name)}}
    assert len({top_entry(name) for name in modules}) <= 17
    assert len(arrows) <= 83


def top_entry(module: str) -> str:
    """`runs` of `kdyno.runs.soak.record`; `kdyno` of the package itself."""
    return module.split(".")[1] if "." in module else module


def room_strays(room: str, may: set[str]) -> list[str]:
    return strays(of_package(room), *(f"kdyno.{name}" for name in (room, *may)))


def test_packages_of_a_room_do_not_import_each_other_in_a_circle() -> None:
    below: dict[str, set[str]] = {}
    for file in FILES:
        own = package_of(name_of(file))
        below.setdefault(own, set()).update({package_of(module) for module in imports(file)} - {own})
    packages = {name for name in below if (SOURCE / name.replace(".", "/")).is_dir()}
    try:
        TopologicalSorter({name: below[name] & packages for name in packages}).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def package_of(module: str) -> str:
    """`run.soak` of `kdyno.runs.soak.record`."""
    return ".".join(module.split(".")[1:3])


def test_a_reader_of_foreign_files_knows_nothing_of_how_they_are_put_together_or_judged() -> None:
    assert not strays(of_package("measure/readers"), "kdyno.measure.readers", "kdyno.measure.workload", "kdyno.base")


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


NAMES_A_KIND = {"kdyno.runs.experiment.tune": "what a search holds out are tests of the agent"}


@pytest.mark.parametrize("package", KINDS)
def test_only_their_own_packages_import_the_kinds_of_machines_and_workloads(package: str) -> None:
    imported = [
        f"{name_of(file)}:{node.lineno}: {alias.name}"
        for file in FILES
        if not lies_in(name_of(file), f"kdyno.{package}", *NAMES_A_KIND)
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in KINDS[package]
    ]
    assert imported == []


READS_A_MACHINE = re.compile(
    r"""(?:about|description)\.facts(?:\[|\.get\()|getattr\([\w.]*(?:machine|settings)\b|["']pmu_\w+["']"""
)


def test_a_machine_is_asked_for_attributes_and_not_for_keys_of_its_facts() -> None:
    """Facts are for the record and for keys of boots; another machine has others."""
    others = [file for file in FILES if not lies_in(name_of(file), "kdyno.boot", "kdyno.base.machine_facts")]
    found = {name_of(file): READS_A_MACHINE.findall(file.read_text(encoding="utf-8")) for file in others}
    assert {module: places for module, places in found.items() if places} == {}


NOT_A_NAME = {
    ("model", "kdyno.base.cpu"): "a field of /proc/cpuinfo",
    ("model", "kdyno.measure.cycles.family"): "a table of a family's file",
    ("wall", "kdyno.measure.readers.units"): "what other tools call a time",
    ("wall", "kdyno.measure.readers.headings"): "the same",
    ("wall", "kdyno.measure.readers.roles"): "the same",
    ("wall", "kdyno.judge.foreign.parts"): "the same",
    ("model", "kdyno.understand.validate.kvm"): "a field and a heading of its report",
    ("wall", "kdyno.understand.validate.kvm"): "the same",
    ("pmu", "kdyno.boot.qemu_config"): "a key of [machine], the emulated PMU",
    ("pmu", "kdyno.boot.uml"): "the same",
    ("pmu", "kdyno.tune.space.bench"): "the same",
    ("pmu", "kdyno.measure.guest.pmu"): "the plugin that emulates it",
    ("pmu", "kdyno.runs.single_boots"): "its record",
    ("pmu", "kdyno.store.schema"): "the same",
    ("pmu", "kdyno.store.whole"): "the same",
    ("pmu", "kdyno.tune.fit.bench"): "the same",
    ("pmu", "kdyno.understand.explain.records"): "the same",
}
"""Words that only look like the name of a machine or of a lane."""


@pytest.mark.parametrize(("names", "home"), [(set(MACHINES), "kdyno.boot"), (set(LANES), "kdyno.base.lanes")])
def test_machines_and_lanes_are_asked_what_they_can_do_and_not_for_their_names(names: set[str], home: str) -> None:
    named = {
        (str(node.value), name_of(file))
        for file in FILES
        if not lies_in(name_of(file), home)
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert named == {place for place in NOT_A_NAME if place[0] in names}, "a stray name, or an excuse for none"


WRITERS = ("kdyno.base.terminal", "kdyno.runs.bootone")
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


def test_a_class_name_means_one_thing() -> None:
    """A stack trace, a schema and a search for a name are unambiguous. Names with an underscore are a module's own."""
    places: dict[str, list[str]] = {}
    for file in FILES:
        for node in parsed(file).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(name_of(file))
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}
