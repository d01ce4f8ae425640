"""Kernels that ccd has compiled: passed through they are the same, mixed they boot and do their work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel.build import build_layouts, plan_build
from kdyno.kernel.delegation.records import Records, read_records
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from tests.e2e.conftest import Kdyno

SOURCE = "debian:linux-source-6.12"
CLANGS = ("kernel/sched/*.c", "fs/*.c")
HALF = {"rule": [{"files": CLANGS, "compiler": "clang-19"}, {"files": ["net/core/*.c"], "by_assembler": True}]}
WHOLE = {"rule": [{"files": ["**"], "by_assembler": True}]}


def built(state: Path, recipe: Recipe) -> Image:
    source = fetch(SOURCE, State(state), print)
    plans = [plan_build(recipe, source, "dyno", State(state))]
    return build_layouts(plans, State(state), lambda _done, _total, _line: None)[0]


def records(image: Image) -> Records:
    return read_records(image.directory / "delegation.jsonl")


def runs(kdyno: Kdyno, image: Image) -> None:
    """Boot it, and run a test in it that forks, reads files and talks through sockets."""
    done = kdyno("boot", image.record.key, "--lane", "model", command=("sh", "-c", "ls /proc/1 | wc -l; uname -r"))
    assert done.stdout.split()[-1] == image.record.release


def passes_the_workload(kdyno: Kdyno, recipe: str) -> None:
    """Run the whole workload in it, as an experiment of one variant and one block."""
    path = kdyno.experiment("workload", f"[variants.it]\n{recipe}", baseline="it", blocks=1)
    report = json.loads(kdyno("run", path, "--json").stdout)
    assert [boot["status"] for boot in report["boots"]] == ["ok"]
    assert not [boot["broken"] for boot in report["boots"] if boot.get("broken")]


@pytest.fixture(scope="session")
def mixed(state: Path) -> Image:
    return built(state, Recipe.model_validate({"opt": "O2", "lines": True, "delegation": HALF}))


def test_passed_through_only_the_kernel_is_the_same_to_the_byte(state: Path) -> None:
    plain = built(state, Recipe(opt="O2", lines=True))
    through = built(state, Recipe.model_validate({"opt": "O2", "lines": True, "delegation": {}}))
    for name in ("vmlinux", "bzImage", "System.map", "config"):
        assert (through.directory / name).read_bytes() == (plain.directory / name).read_bytes(), name
    made = records(through)
    assert len(made.objects) > 700
    assert {record.answer for record in made.objects} == {"passed"}


@pytest.mark.long  # a kernel of its own: its configuration is what both compilers support
def test_a_kernel_of_two_compilers_boots_and_passes_the_workload(kdyno: Kdyno, mixed: Image) -> None:
    runs(kdyno, mixed)
    rule = json.dumps(list(CLANGS))
    passes_the_workload(
        kdyno,
        'opt = "O2"\nlines = true\n'
        f'[[variants.it.delegation.rule]]\nfiles = {rule}\ncompiler = "clang-19"\n'
        '[[variants.it.delegation.rule]]\nfiles = ["net/core/*.c"]\nby_assembler = true\n',
    )


@pytest.mark.long
def test_who_made_what_is_on_record(kdyno: Kdyno, mixed: Image) -> None:
    by_source = {record.source: record for record in records(mixed).objects}
    assert by_source["kernel/sched/core.c"].compiler == "clang-19"
    assert (by_source["net/core/sock.c"].compiler, by_source["net/core/sock.c"].by_assembler) == ("gcc", True)
    assert by_source["kernel/fork.c"].answer == "passed"
    assert by_source["arch/x86/boot/main.c"].reason == "not code of the running kernel"
    shown = kdyno("delegation", "show", mixed.record.key[:12]).stdout
    assert re.search(r"^image \w{12}: gcc [\d,]+ objects, \d+ by way of assembler; clang-19 \d+ objects$", shown, re.M)
    assert "  fs/open.c: clang-19, " in shown
    (held,) = [note for note in mixed.record.notes if "all support" in note]
    assert "(y with gcc alone)" in held


@pytest.mark.long
@pytest.mark.parametrize("toolchain", ["gcc-12", "clang-19"])
def test_a_whole_kernel_by_way_of_assembler_passes_the_workload(kdyno: Kdyno, state: Path, toolchain: str) -> None:
    image = built(state, Recipe.model_validate({"toolchain": toolchain, "layout_seed": 1, "delegation": WHOLE}))
    made = records(image)
    assert sum(record.by_assembler for record in made.objects) > 600
    runs(kdyno, image)
    rule = '[[variants.it.delegation.rule]]\nfiles = ["**"]\nby_assembler = true\n'
    passes_the_workload(kdyno, f'toolchain = "{toolchain}"\nlayout_seed = 1\n{rule}')
