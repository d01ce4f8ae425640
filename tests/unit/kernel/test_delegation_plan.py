"""Delegation plans as files: globs, rules, tables, extends, and every mistake in them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.kernel import toolchain
from kdyno.kernel.delegation import globs
from kdyno.kernel.delegation.plan_file import BadPlan, CyclicExtends, DelegationPlan, PlanUnreadable, load
from kdyno.kernel.delegation.resolve import (
    FileGivenTwice,
    PassUnknown,
    ProgramUnfit,
    Resolution,
    RuleWithoutFiles,
    ZigMissing,
    resolve,
)
from kdyno.kernel.delegation.resolved import Resolved, ResolvedChoice
from kdyno.kernel.toolchain import CompilerMissing

GLOBS = Path(__file__).parents[2] / "data" / "delegation" / "globs.json"
FILES = ("kernel/fork.c", "kernel/sched/core.c", "kernel/sched/fair.c", "mm/mmap.c", "fs/open.c")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in FILES:
        file = tmp_path / "linux" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("int x;\n")
    return tmp_path / "linux"


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def plan_file(folder: Path, text: str, name: str = "plan.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def resolution(path: Path, tree: Path, state: State) -> Resolution:
    return resolve(load(path), tree, "toy", toolchain.find("gcc", state), state)


def resolved(folder: Path, text: str, tree: Path, state: State) -> Resolved:
    return resolution(plan_file(folder, text), tree, state).plan


@pytest.mark.parametrize("row", json.loads(GLOBS.read_text()), ids=lambda row: f"{row['glob']} on {row['path']}")
def test_a_glob_matches_what_ccd_matches_too(row: dict[str, Any]) -> None:
    assert globs.matches(row["glob"], row["path"]) is row["matches"]


@pytest.mark.parametrize("path", ["fs/open.c", "a[1].c", "a*b?.c", "x]y.c"])
def test_an_escaped_path_matches_itself_alone(path: str) -> None:
    assert globs.matches(globs.escaped(path), path)
    assert not globs.matches(globs.escaped(path), f"{path}x")


def test_the_first_rule_that_matches_decides(tmp_path: Path, tree: Path, state: State) -> None:
    text = """
    [[rule]]
    files = ["kernel/sched/fair.c"]
    add = ["-O3"]
    [[rule]]
    files = ["kernel/**/*.c"]
    by_assembler = true
    remove = ["-g"]
    """
    plan = resolved(tmp_path, text, tree, state)
    assert plan.choice_of("kernel/sched/fair.c") == ResolvedChoice(compiler="gcc", add=("-O3",))
    by_assembler = ResolvedChoice(compiler="gcc", remove=("-g",), by_assembler=True, passes=("common", "foreign"))
    assert plan.choice_of("kernel/fork.c") == by_assembler
    assert plan.choice_of("mm/mmap.c") == ResolvedChoice(compiler="gcc")
    assert not plan.held


def test_what_a_plan_extends_comes_after_its_own_rules(tmp_path: Path, tree: Path, state: State) -> None:
    (tmp_path / "base").mkdir()
    program = plan_file(tmp_path / "base", "#!/bin/sh\ncat\n", "mend")
    program.chmod(0o755)
    base = """
    strict = false
    passes = ["mine"]
    programs = {mine = "mend"}
    [[rule]]
    files = ["**"]
    by_assembler = true
    """
    plan_file(tmp_path / "base", base)
    own = 'extends = "base/plan.toml"\nfallback = true\n[[rule]]\nfiles = ["fs/open.c"]\nadd = ["-O1"]\n'
    path = plan_file(tmp_path, own)
    written = load(path)
    assert (written.strict, written.fallback, len(written.rule)) == (False, True, 2)
    plan = resolution(path, tree, state).plan
    assert plan.choice_of("fs/open.c").add == ("-O1",)
    assert plan.choice_of("mm/mmap.c").passes == ("mine",)
    (kept,) = plan.programs["mine"]
    assert Path(kept).read_bytes() == program.read_bytes() and shutil.which(kept)


def test_a_table_is_one_rule_for_each_choice_in_it(tmp_path: Path, tree: Path, state: State) -> None:
    rows = ("fs/open.c,12,gcc,-O3 -fno-ivopts,", "mm/mmap.c,9,gcc,-O3 -fno-ivopts,", "kernel/fork.c,1,,,-g")
    plan_file(tmp_path, "\n".join(("file,cycles,compiler,add,remove", *rows)), "hot.csv")
    plan = resolved(tmp_path, '[[rule]]\ntable = "hot.csv"\n', tree, state)
    assert plan.choice_of("fs/open.c").add == plan.choice_of("mm/mmap.c").add == ("-O3", "-fno-ivopts")
    assert plan.choice_of("kernel/fork.c").remove == ("-g",)
    assert all(rule.name.startswith("rule 1 (") for rule in plan.rules)


def test_the_digest_of_a_plan_is_that_of_its_effect_and_of_its_programs(
    tmp_path: Path, tree: Path, state: State
) -> None:
    program = plan_file(tmp_path, "#!/bin/sh\ncat\n", "mend")
    program.chmod(0o755)
    text = '[programs]\nmine = "mend"\n[[rule]]\nfiles = ["**"]\nby_assembler = true\npasses = ["mine"]\n'
    first = resolution(plan_file(tmp_path, text), tree, state).input.digest
    assert resolution(plan_file(tmp_path, f"# a comment\n{text}"), tree, state).input.digest == first
    program.write_text("#!/bin/sh\ncat #\n")
    assert resolution(plan_file(tmp_path, text), tree, state).input.digest != first


def test_a_second_compiler_holds_the_configuration(tmp_path: Path, tree: Path, state: State) -> None:
    if shutil.which("clang-19") is None:
        pytest.skip("needs clang-19")
    resolved = resolution(plan_file(tmp_path, 'compilers = ["clang-19"]\n'), tree, state)
    assert resolved.plan.held and resolved.plan.compilers["clang-19"].family == "clang"
    assert resolved.compilers[0].startswith("clang-19 19.")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("rule = 3", BadPlan, "`rule`: a list"),
        ("[[rule]]\nfilse = ['a.c']", BadPlan, "unknown key `rule.0.filse`; did you mean `files`?"),
        ("[[rule]]\n", BadPlan, "a rule has either files or a table"),
        ("[[rule]]\nfiles = ['a[.c']", BadPlan, "`a[.c` is not a glob: a [ without its ]"),
        ("[[rule]]\nfiles = ['a[z-a].c']", BadPlan, "`a[z-a].c` is not a glob: bad character range z-a"),
        ("[[rule]]\nfiles = ['a**.c']", BadPlan, "** stands for directories"),
        ("[[rule]]\nfiles = ['**']\ncompiler = 'icc'", BadPlan, "`rule.0.compiler`: ccd knows no compiler `icc`"),
        ("[[rule]]\nfiles = ['**']\npasses = ['common']", BadPlan, "passes need by_assembler = true"),
        ("[programs]\ncommon = 'x'", BadPlan, "common is a pass that ccd has"),
        ("[[rule]]\nfiles = ['**']\nadd = ['-O2 -g']", BadPlan, "rule.0.add.0"),
        ("[[rule", BadPlan, "not TOML"),
        ("[[rule]]\nfiles = ['kernel/sched/*.h']", RuleWithoutFiles, "rule 1 of the delegation plan matches nothing"),
        ("[[rule]]\nfiles = ['o/fs/open.c']", RuleWithoutFiles, "toy has no file o/fs/open.c"),
        ("[[rule]]\nfiles = ['**']\ncompiler = 'gcc-3'", CompilerMissing, "there is no gcc-3 here"),
        ("[[rule]]\nfiles = ['**']\nby_assembler = true\npasses = ['mine']", PassUnknown, "wants the pass mine"),
        (
            "[programs]\nmine = 'gone'\n[[rule]]\nfiles = ['**']\nby_assembler = true\npasses = ['mine']",
            ProgramUnfit,
            "No such file",
        ),
        (
            "[programs]\nmine = 'plan.toml'\n[[rule]]\nfiles = ['**']\nby_assembler = true\npasses = ['mine']",
            ProgramUnfit,
            "it is not executable",
        ),
        (
            "[[rule]]\nfiles = ['fs/open.c']\nadd = ['-O3']\n[[rule]]\nfiles = ['fs/open.c']\n",
            FileGivenTwice,
            "two choices for fs/open.c: the reference -O3 (rule 1) and the reference (rule 2)",
        ),
        ("[[rule]]\ntable = 'gone.csv'", PlanUnreadable, "gone.csv: No such file"),
        ("[[rule]]\ntable = 'plan.toml'", BadPlan, "the table has no column file"),
        ("extends = 'plan.toml'", CyclicExtends, "plan.toml -> "),
        ("extends = 'gone.toml'", PlanUnreadable, "gone.toml: No such file"),
    ],
)
def test_a_bad_plan_is_one_message_that_names_the_thing(
    tmp_path: Path, tree: Path, state: State, text: str, error: type[UserError], message: str
) -> None:
    with pytest.raises(error) as raised:
        resolved(tmp_path, text, tree, state)
    assert message in str(raised.value)
    assert raised.value.advice


def test_the_near_miss_of_a_path_is_named(tmp_path: Path, tree: Path, state: State) -> None:
    with pytest.raises(RuleWithoutFiles) as raised:
        resolved(tmp_path, "[[rule]]\nfiles = ['build/o/fs/open.c']", tree, state)
    assert "is it fs/open.c?" in raised.value.advice


def test_a_circle_of_plans_is_named_from_end_to_end(tmp_path: Path) -> None:
    plan_file(tmp_path, "extends = 'b.toml'", "a.toml")
    plan_file(tmp_path, "extends = 'a.toml'", "b.toml")
    with pytest.raises(CyclicExtends, match=r"a\.toml -> \S*b\.toml -> \S*a\.toml"):
        load(tmp_path / "a.toml")


def test_two_rows_for_one_file_are_refused(tmp_path: Path, tree: Path, state: State) -> None:
    plan_file(tmp_path, "file,compiler,add\nfs/open.c,gcc,-O3\nfs/open.c,gcc,-O1\n", "hot.csv")
    with pytest.raises(FileGivenTwice, match=r"gcc -O1 \(rule 1\) and gcc -O3 \(rule 1\)"):
        resolved(tmp_path, "[[rule]]\ntable = 'hot.csv'", tree, state)


def test_a_row_that_is_wrong_is_named_by_its_line(tmp_path: Path, tree: Path, state: State) -> None:
    plan_file(tmp_path, "file,compiler\nfs/open.c,gcc\nmm/mmap.c,icc\n", "hot.csv")
    with pytest.raises(BadPlan, match="line 3: `compiler`"):
        resolved(tmp_path, "[[rule]]\ntable = 'hot.csv'", tree, state)


def test_zig_is_looked_for_on_the_path(
    tmp_path: Path, tree: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_which = shutil.which
    monkeypatch.setattr("shutil.which", lambda name, **more: None if name == "zig" else real_which(name, **more))
    with pytest.raises(ZigMissing):
        resolved(tmp_path, "[[rule]]\nfiles = ['**']\ncompiler = 'zig'", tree, state)


def test_a_plan_in_a_recipe_is_the_same_as_in_a_file(tmp_path: Path, tree: Path, state: State) -> None:
    path = plan_file(tmp_path, "[[rule]]\nfiles = ['**']\nadd = ['-O3']")
    table = DelegationPlan.model_validate({"rule": [{"files": ["**"], "add": ["-O3"]}]})
    inline = resolve(table, tree, "toy", toolchain.find("gcc", state), state)
    assert inline.input.digest == resolution(path, tree, state).input.digest
