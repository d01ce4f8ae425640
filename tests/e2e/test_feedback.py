"""Tuned kernels, really: trained in boots, linked or compiled by what that showed, booted and judged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kdyno.kernel.delegation.records import read_records
from tests.e2e.conftest import WITH_ROOT, Kdyno

ORDERED = f"""
[variants.plain]
{WITH_ROOT}
layout_seed = 1

[variants.ordered]
extends = "plain"
profile = {{ train = ["lat_syscall", "lat_pipe"], use = "order", seeds = 1 }}

[workload]
tests = ["lat_syscall", "lat_pipe"]

[machine]
lane = "model"
[machine.pmu]
family = "znver4"
"""

WITHOUT_NETWORK = "{ INET = false, NET = false, SECCOMP = false, KALLSYMS = false, HYPERVISOR_GUEST = false }"
COMPILED = f"""
[variants.plain]
toolchain = "clang-19"
opt = "O2"
lines = true
kconfig = {WITHOUT_NETWORK}

[variants.tuned]
extends = "plain"
profile = {{ train = ["lat_syscall", "lat_pipe"], use = ["autofdo"], seeds = 2 }}

[workload]
tests = ["lat_syscall", "lat_pipe"]

[machine]
lane = "model"
[machine.pmu]
family = "znver4"
"""


def image(kdyno: Kdyno, path: str, variant: str) -> dict[str, Any]:
    """The record of the only image of a variant, which is built if it isn't there."""
    [record] = json.loads(kdyno("build", path, variant, "--json").stdout)[variant]
    assert isinstance(record, dict)
    return record


def ratios(kdyno: Kdyno, path: str) -> dict[str, float]:
    """By benchmark, the tuned kernel's modelled cycles as a part of the plain one's; every boot has to be good."""
    report = json.loads(kdyno("run", path, "--json").stdout)
    assert {boot["status"] for boot in report["boots"]} == {"ok"}
    return {row["benchmark"]: row["estimate"]["ratio"] for row in report["comparisons"]}


def test_functions_that_ran_come_first_in_an_order_and_the_kernel_runs(kdyno: Kdyno, state: Path) -> None:
    path = kdyno.experiment("ordered", ORDERED, baseline="plain", blocks=2)
    record = image(kdyno, path, "ordered")
    [note] = (note for note in record["notes"] if note.startswith("order: "))
    placed, listed = map(int, re.findall(r"(\d+) of its (\d+) functions come first", note.replace(",", ""))[0])
    assert 100 < placed <= listed
    first = (state / "inputs" / record["inputs"]["order"]).read_text().split("\n")
    names = {line.split()[0] for line in first if line and not line.startswith("#")}
    symbols = (state / "images" / record["key"] / "System.map").read_text().splitlines()
    text = [line.split()[2] for line in symbols if line.split()[1] in "tT" and " __pfx_" not in line]
    begins = next(index for index, name in enumerate(text) if name in names)
    assert len(names.intersection(text[begins : begins + placed])) > 0.9 * placed
    assert "lat_pipe" in ratios(kdyno, path)
    again = json.loads(kdyno("plan", path, "--json").stdout)
    assert (again["training_boots"], again["boots"]) == (0, []), "the second time nothing is done"


@pytest.mark.long
def test_clang_compiles_by_what_was_recorded_and_only_the_files_that_it_is_about(kdyno: Kdyno, state: Path) -> None:
    path = kdyno.experiment("compiled", COMPILED, baseline="plain", blocks=2)
    key = image(kdyno, path, "tuned")["key"]
    made = read_records(state / "images" / key / "delegation.jsonl")
    assert 30 < made.profiled["autofdo"] < len(made.objects) / 2
    sources = {record.source for record in made.objects if record.profiles}
    assert {"fs/read_write.c", "fs/pipe.c", "kernel/sched/core.c"} <= sources and "kernel/reboot.c" not in sources
    assert "kernel/reboot.c" in {record.source for record in made.objects}
    cycles = ratios(kdyno, path)
    assert cycles["lat_pipe"] < 1 and cycles["lat_syscall.stat"] < 1, "fewer modelled cycles, the same in every run"


def test_a_training_that_runs_something_else_is_refused_by_name(kdyno: Kdyno) -> None:
    path = kdyno.experiment(
        "other", ORDERED.replace('"lat_pipe"], use', '"lat_pype"], use'), baseline="plain", blocks=1
    )
    message = kdyno("plan", path, status=1).stderr
    assert "lat_pype" in message and "did you mean lat_pipe?" in message
