"""`kdyno kernel lint --profile` and `--costs`: costly instructions by what they cost under a load."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from kdyno.cli.main import main
from kdyno.kernel.images import content_digest
from kdyno.measure.cycles.instruction_costs import CostsUnreadable, costs_toml, read_costs
from kdyno.measure.guest.pmu_parts import Function, Region
from kdyno.understand.lab.instructions import costs_of, instruction_loops
from kdyno.understand.lint.costly import NothingCostly, costly_rules, measured_rules
from tests.unit.pmu_specimen import context, iteration, specimen, write

SOURCE = """
unsigned long few(unsigned long a, unsigned long b) { return a % b; }
unsigned long many(unsigned long a, unsigned long b) { return a % b + b % (a | 1); }
unsigned int half(unsigned int a, unsigned int b) { return a / b; }
unsigned long never(unsigned long a, unsigned long b) { return a / b; }
"""
LOOPS = {loop.name: loop for loop in instruction_loops()}
EQUAL = dict.fromkeys(LOOPS, 2.0)


@pytest.fixture(name="vmlinux", scope="module")
def vmlinux_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel of four functions that divide, at its address."""
    directory = tmp_path_factory.mktemp("kernel")
    (directory / "kernel.c").write_text(SOURCE)
    compile_words = ["gcc", "-O2", "-fcf-protection=none", "-fno-pic", "-mcmodel=kernel", "-c", "kernel.c"]
    subprocess.run(compile_words, cwd=directory, check=True)
    link_words = ["ld", "-z", "noexecstack", "-e0", "-Ttext=0xffffffff81000000", "-o", "vmlinux", "kernel.o"]
    subprocess.run(link_words, cwd=directory, check=True)
    return directory / "vmlinux"


def record_of(vmlinux: Path, path: Path, loads: Mapping[str, Mapping[str, int]]) -> Path:
    """Write a record of a load: by benchmark, how often each function ran. A run counts ten instructions."""
    words = ["nm", "-S", "--defined-only", str(vmlinux)]
    listing = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split("\n")
    rows = [line.split() for line in listing if len(line.split()) == 4]
    places = {name: (int(address, 16), int(size, 16)) for address, size, _, name in rows}
    functions = (
        Function(0, 0, "[unknown]"),
        *(Function(*place, name) for name, place in sorted(places.items(), key=itemgetter(1))),
    )
    regions = {}
    for index, counts in enumerate(loads.values()):
        blocks = [(places[name][0], 10, places[name][1] - 1, places[name][1], count) for name, count in counts.items()]
        events = iteration((10 * sum(counts.values()), 0, 0), (0, 0, 0), (0, 0, 0))
        regions[index] = Region(index, {0: events}, (context(blocks), context(), context()), ())
    image = content_digest(vmlinux)
    return write(
        path, replace(specimen(), image=image, functions=functions, regions=regions, benchmarks=tuple(loads), opened=9)
    )


def costs_file(tmp_path: Path, **cycles: float) -> Path:
    """Write costs where all instructions take 2 cycles but for some."""
    path = tmp_path / "costs.toml"
    costs = costs_of(EQUAL | {name.replace("_", "-"): value for name, value in cycles.items()}, "a CPU")
    path.write_text(costs_toml(costs))
    return path


def lint(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    capsys.readouterr()
    assert main(["kernel", "lint", *map(str, words), "--only", "costly-instruction", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_with_a_load_and_costs_what_has_most_to_save_comes_first_and_what_never_runs_is_left_out(
    vmlinux: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = record_of(vmlinux, tmp_path / "r", {"a": {"few": 60, "many": 40}, "b": {"half": 5, "few": 5}})
    report = lint(capsys, vmlinux, "--profile", profile, "--costs", costs_file(tmp_path, div_64=32.0, div_32=12.0))
    # Both benchmarks weigh the same: half a million instructions each, of which a tenth begins a function.
    rows = [(one["function"], one["executions"], one["cycles"]) for one in report["findings"]]
    assert rows == [
        ("few", pytest.approx(30_000 + 25_000), pytest.approx(30 * 55_000)),
        ("many", pytest.approx(40_000), pytest.approx(30 * 40_000)),
        ("half", pytest.approx(25_000), pytest.approx(10 * 25_000)),
    ]
    assert "of 95000 executions per million instructions, up to 1650000 cycles" in report["findings"][0]["message"]
    assert "32.0 cycles, multiply-high: 2.0 (measured)" in report["findings"][0]["message"]
    assert report["costs_of"] == "a CPU"


def test_without_measured_costs_the_order_is_that_of_executions(
    vmlinux: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = record_of(vmlinux, tmp_path / "r", {"a": {"few": 10, "many": 90}})
    report = lint(capsys, vmlinux, "--profile", profile, "--family", "skylake")
    rows = [(one["function"], one["executions"], one["cycles"]) for one in report["findings"]]
    assert rows == [("many", pytest.approx(180_000), None), ("few", pytest.approx(10_000), None)]
    assert "about 76 cycles (LLVM" in report["findings"][0]["message"]


def test_without_a_load_measured_costs_are_those_of_the_instructions_in_the_code(
    vmlinux: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = lint(capsys, vmlinux, "--costs", costs_file(tmp_path, div_64=32.0))
    assert {one["function"] for one in report["findings"]} == {"few", "many", "never"}
    assert all(one["executions"] is None and one["cycles"] is None for one in report["findings"])


def test_people_read_what_could_be_saved_and_whose_costs_these_are(
    vmlinux: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = record_of(vmlinux, tmp_path / "r", {"a": {"few": 1, "many": 999_999}})
    costs = costs_file(tmp_path, div_64=32.0)
    assert main(["kernel", "lint", str(vmlinux), "--profile", str(profile), "--costs", str(costs)]) == 0
    output = capsys.readouterr()
    assert "would save at most 6M cycles per million instructions of the load" in output.out
    assert "lane wall, cycles of the core, measured on a CPU" in output.err


def test_a_load_that_does_not_belong_to_the_kernel_is_refused(
    vmlinux: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write(tmp_path / "other")
    unnamed = write(tmp_path / "unnamed", image=None)
    idle = record_of(vmlinux, tmp_path / "idle", {"a": {}})
    mine = record_of(vmlinux, tmp_path / "mine", {"a": {"few": 1}})
    text = tmp_path / "text"
    text.write_text("few 1\n")
    for profile, files, why in (
        (other, [vmlinux], "is not the vmlinux that ran"),
        (unnamed, [vmlinux], "does not identify the vmlinux that ran"),
        (idle, [vmlinux], "no instruction of a kernel within the measured loops"),
        (mine, [vmlinux, vmlinux.with_name("kernel.o")], "--profile is about one kernel, and 2 files are checked"),
        (text, [vmlinux], "is not a PMU record"),
        (tmp_path / "nowhere", [vmlinux], "No such file"),
    ):
        arguments = ["kernel", "lint", *map(str, files), "--family", "skylake", "--profile", str(profile)]
        assert main(arguments) != 0
        captured = capsys.readouterr().err
        assert why in captured and "hint: " in captured, why
    assert main(["kernel", "lint", str(vmlinux), "--profile", str(mine)]) == 1
    assert "pass --family NAME or --costs FILE" in capsys.readouterr().err


def test_costs_are_read_as_they_were_written(tmp_path: Path) -> None:
    costs = read_costs(costs_file(tmp_path, div_64=32.25, mfence=33.0))
    bad = {cost.name: (cost.cycles, cost.better, cost.better_cycles) for cost in costs.instructions if cost.is_bad}
    assert bad == {"div-64": (32.25, "multiply-high", 2.0), "mfence": (33.0, "lock-add-stack", 2.0)}
    assert {cost.name for cost in costs.instructions} == LOOPS.keys()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense", "not TOML"),
        ('cpu = "x"', "`instruction` is missing"),
        ('cpu = "x"\n[instruction.a]\nwhat = "a"\nkind = "latency"\ncycles = -1', "greater than 0"),
        ('cpu = "x"\n[instruction.a]\nwhat = "a"\nkind = "latency"\ncycles = nan', "`instruction.a.cycles`"),
        ('cpu = "x"\n[instruction.a]\nwhat = "a"\nkind = "latency"\ncycles = 2\nbetter = "b"', "belong together"),
        ('cpu = "x"\n[instruction.a]\nwhat = "a"\nkind = "latency"\ncycles = 2\nbeter = "b"', "did you mean `better`"),
    ],
)
def test_a_file_that_has_no_costs_is_refused_with_the_mistake(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "costs.toml"
    path.write_text(text)
    with pytest.raises(CostsUnreadable) as refused:
        read_costs(path)
    assert why in str(refused.value)


def test_costs_without_anything_bad_that_a_kernel_can_have_are_refused(tmp_path: Path) -> None:
    path = costs_file(tmp_path, failed_forward=20.0)
    with pytest.raises(NothingCostly):
        measured_rules(read_costs(path), path)


def test_the_loop_of_each_rule_has_a_better_one() -> None:
    loops = [rule.loop for rule in costly_rules() if rule.loop]
    assert len(loops) == len(set(loops)) >= 6
    assert all(LOOPS[name].better for name in loops)


def test_a_rule_has_costs_of_families_or_a_loop() -> None:
    for rule in costly_rules():
        assert rule.cost or rule.loop, rule.name
        assert not rule.cost or (rule.source and rule.advice), rule.name
