"""From an assignment to a delegation plan: as part of a recipe, and as files that are read as any plan is."""

from __future__ import annotations

from pathlib import Path

from kdyno.kernel.delegation.plan_file import DelegationPlan, load, read_table
from kdyno.kernel.recipe import Recipe
from kdyno.runs.experiment.tune import CompilerChoice
from kdyno.tune.delegation.delegation import plan_of, plan_text, table_text, whole_kernel

CHOICES = {
    "clang": CompilerChoice(compiler="clang-19"),
    "O3": CompilerChoice(compiler="gcc-12", add=("-O3", "-fno-ipa-cp"), remove=("-fconserve-stack",)),
    "zig": CompilerChoice(compiler="zig"),
}
ASSIGNMENT = {"mm/slub.c": "O3", "fs/open.c": "clang", "fs/namei.c": "clang"}
COSTS = {"mm/slub.c": (0.02, 0.01), "fs/open.c": (0.03, 0.029), "fs/namei.c": (0.1, 0.08)}


def test_each_choice_that_has_files_becomes_a_rule() -> None:
    plan = plan_of(ASSIGNMENT, CHOICES, ["clang-19", "gcc-12"])
    assert plan.compilers == ("clang-19", "gcc-12")
    assert [(rule.compiler, rule.files) for rule in plan.rule] == [
        ("gcc-12", ("mm/slub.c",)),
        ("clang-19", ("fs/namei.c", "fs/open.c")),
    ]
    assert plan.rule[0].remove == ("-fconserve-stack",)


def test_a_whole_kernel_of_another_compiler_family_lacks_what_only_the_references_compiler_can_do() -> None:
    recipe = Recipe(toolchain="clang-19", lto="thin", opt="O3")
    gcc, clang = (whole_kernel(recipe, CompilerChoice(compiler=compiler)) for compiler in ("gcc-12", "clang-18"))
    assert (gcc.lto, gcc.profile, gcc.opt) == ("none", None, "O3")
    assert clang.lto == "thin"


def test_the_files_that_are_written_are_read_as_a_plan_with_a_table(tmp_path: Path) -> None:
    table = tmp_path / "plan.csv"
    table.write_text(table_text(ASSIGNMENT, CHOICES, COSTS))
    (tmp_path / "plan.toml").write_text(plan_text("plan.csv", ["Nothing is claimed: lat_pipe is undecided"]))
    plan = load(tmp_path / "plan.toml")
    assert [rule.table for rule in plan.rule] == [str(table)]
    rules = read_table(table)
    assert [rule.files for rule in rules] == [("fs/namei.c",), ("mm/slub.c",), ("fs/open.c",)]  # by what they save
    assert (rules[1].compiler, rules[1].add, rules[1].remove) == ("gcc-12", CHOICES["O3"].add, CHOICES["O3"].remove)
    assert table.read_text().splitlines()[1] == "fs/namei.c,clang-19,,,clang,0.100000,0.080000"


def test_a_whole_kernel_is_configured_and_made_by_its_compiler_alone() -> None:
    reference = Recipe(toolchain="gcc-12", opt="O2")
    assert whole_kernel(reference, CHOICES["clang"]) == Recipe(toolchain="clang-19", opt="O2")
    flagged = whole_kernel(reference, CHOICES["O3"])
    assert flagged.toolchain == "gcc-12" and isinstance(flagged.delegation, DelegationPlan)
    [rule] = flagged.delegation.rule
    assert (rule.files, rule.compiler, rule.add) == (("**/*.c",), None, ("-O3", "-fno-ipa-cp"))
    zig = whole_kernel(reference, CHOICES["zig"])
    assert zig.toolchain == "gcc-12" and isinstance(zig.delegation, DelegationPlan)
    assert zig.delegation.rule[0].compiler == "zig"
