"""Delegation on the toy kernel: who compiles what, what is on record, and what never passes for a build."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.state import State
from kdyno.kernel import build as build_module
from kdyno.kernel.build import BuildFailed, build, build_layouts
from kdyno.kernel.delegation import ccd
from kdyno.kernel.delegation.ccd import ObjectStale, ProfileUnused, RecordsIncomplete
from kdyno.kernel.delegation.held import LtoByAssembler, MixRefused, held_symbols, refuse_unshared
from kdyno.kernel.delegation.records import ObjectRecord, RecordsUnreadable, read_records
from kdyno.kernel.delegation.resolve import RuleWithoutFiles
from kdyno.kernel.delegation.resolved import Compiler, ProfileUse, Resolved, ResolvedChoice, ResolvedRule
from kdyno.kernel.delegation.show import image_lines, image_view
from kdyno.kernel.image import Image
from kdyno.kernel.images import ImageCorrupt, load_image
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource, fetch
from tests.unit.kernel_toy import built, no_progress, plan, silent, toy_tree

CLANG = "clang-19"
OBJECTS = {"init/main.o", "fs/open.o", "lib/crc32.o"}


@pytest.fixture(autouse=True)
def _own_ccache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path_factory.getbasetemp() / "ccache"))


def delegated(*rules: Mapping[str, Any], **settings: Any) -> Recipe:
    kconfig = settings.pop("kconfig", {})
    return Recipe.model_validate({"kconfig": kconfig, "delegation": {"rule": rules, **settings}})


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")


def records(image: Image) -> dict[str, ObjectRecord]:
    return {record.object: record for record in read_records(image.directory / "delegation.jsonl").objects}


def made_by(image: Image) -> dict[str, str]:
    return {name: record.compiler for name, record in records(image).items()}


def comments(image: Image) -> str:
    """What compilers wrote about themselves into vmlinux."""
    vmlinux = image.directory / "vmlinux"
    return subprocess.run(["readelf", "-p", ".comment", vmlinux], capture_output=True, text=True, check=True).stdout


def test_a_plan_without_rules_gives_the_same_bytes(source: KernelSource, state: State) -> None:
    plain, through = built(Recipe(), source, state), built(delegated(), source, state)
    assert plain.record.key != through.record.key
    for name in ("vmlinux", "System.map", "config"):
        assert (plain.directory / name).read_bytes() == (through.directory / name).read_bytes()
    assert through.record.objects == {"gcc": 3}
    assert {record.answer for record in records(through).values()} == {"passed"}
    assert records(through).keys() == OBJECTS


def test_a_rule_gives_a_file_to_another_compiler_and_says_so(source: KernelSource, state: State) -> None:
    needs(CLANG)
    image = built(delegated({"files": ["fs/*.c"], "compiler": CLANG, "add": ["-O1"]}), source, state)
    assert made_by(image) == {"init/main.o": "gcc", "fs/open.o": CLANG, "lib/crc32.o": "gcc"}
    record = records(image)["fs/open.o"]
    assert (record.answer, record.rule, record.added) == ("rewritten", "rule 1", ("-O1",))
    assert record.seconds is not None and record.seconds > 0
    assert "GCC" in comments(image) and "clang" in comments(image)
    view = image_view(image)
    assert view is not None and view.summary == f"gcc 2 objects; {CLANG} 1 object"
    assert any(line.startswith(f"  fs/open.c: {CLANG} -O1") for line in image_lines(view))


def test_a_rule_may_name_a_file_that_a_patch_adds(tmp_path: Path, source: KernelSource, state: State) -> None:
    patch = tmp_path / "close.patch"
    patch.write_text("--- /dev/null\n+++ b/fs/close.c\n@@ -0,0 +1 @@\n+int closed;\n")
    rule = {"files": ["fs/close.c"], "compiler": "gcc", "add": ["-O1"]}
    with pytest.raises(RuleWithoutFiles):
        plan(delegated(rule), source, state)
    recipe = delegated(rule).model_copy(update={"patches": (str(patch),)})
    resolved = plan(recipe, source, state).delegation
    assert resolved and resolved.plan.rule_of("fs/close.c") == resolved.plan.rules[0]


def test_symbols_that_compilers_do_not_share_are_held_and_listed(source: KernelSource, state: State) -> None:
    needs(CLANG)
    image = built(delegated({"files": ["fs/*.c"], "compiler": CLANG}), source, state)
    config = image.config.read_text()
    assert "# CONFIG_CC_HAS_IPA_PTA is not set" in config
    assert "CONFIG_CC_HAS_CONSERVE_STACK=y" in config  # clang goes without; the table says so
    assert "# CONFIG_CC_IS_CLANG is not set" in config
    (note,) = [note for note in image.record.notes if "held" in note]
    assert f"gcc and {CLANG} all support: CC_HAS_IPA_PTA is n (y with gcc alone)" in note
    probes = read_records(image.directory / "delegation.jsonl").probes
    assert [(probe.refused_by, "-fipa-pta" in probe.probe) for probe in probes] == [(CLANG, True)]


@pytest.mark.parametrize("compiler", ["gcc", CLANG])
def test_by_way_of_assembler_the_object_is_as_good(source: KernelSource, state: State, compiler: str) -> None:
    needs(compiler)
    image = built(delegated({"files": ["**"], "compiler": compiler, "by_assembler": True}), source, state)
    assert {record.by_assembler for record in records(image).values()} == {True}
    assert {done.name for record in records(image).values() for done in record.passes} == {"common", "foreign"}
    assert set(made_by(image).values()) == {compiler}


def test_a_pass_of_ones_own_sees_all_assembler_and_may_change_it(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    program = tmp_path / "rename"
    program.write_text("#!/bin/sh\nexec sed s/sys_close/sys_shut/g\n")
    program.chmod(0o755)
    rule = {"files": ["fs/open.c"], "by_assembler": True, "passes": ["mine"]}
    image = built(delegated(rule, programs={"mine": str(program)}), source, state)
    assert "sys_shut" in image.symbols.read_text() and "sys_close" not in image.symbols.read_text()


def test_objects_are_looked_through_where_the_plan_asks_for_it(tmp_path: Path, state: State) -> None:
    tree = toy_tree(tmp_path)
    with (tree / "fs/open.c").open("a") as file:
        file.write(
            "struct counter { int value; };\n"
            "static inline void dec(struct counter copy)\n"
            '{ asm volatile("lock; decl %0" : "+m" (copy.value) : : "memory"); }\n'
            "void drop(struct counter *counter) { dec(*counter); }\n"
        )
    image = built(delegated(lint=True), fetch(str(tree), state, silent), state)
    by_object = {name: [finding["lint"] for finding in record.findings] for name, record in records(image).items()}
    assert by_object == {"init/main.o": [], "fs/open.o": ["lock-on-stack-copy"], "lib/crc32.o": []}
    (finding,) = records(image)["fs/open.o"].findings
    assert finding["function"] == "drop" and finding["instruction"].startswith("lock dec")
    assert "ccd: warning: fs/open.c: drop: lock-on-stack-copy" in (image.directory / "build.log").read_text()
    view = image_view(image)
    assert view is not None and any(line.startswith("finding: fs/open.c: drop: lock-on") for line in image_lines(view))


def test_images_whose_rules_differ_share_all_objects_but_those(source: KernelSource, state: State) -> None:
    recipes = [
        delegated(),
        delegated({"files": ["fs/open.c"], "add": ["-O1"]}),
        delegated({"files": ["fs/open.c", "lib/*.c"], "add": ["-O1"]}),
        delegated({"files": ["lib/*.c"], "add": ["-O3"]}),
    ]
    plans = [plan(recipe, source, state) for recipe in recipes]
    assert len({plan.objects_key for plan in plans}) == 1
    assert len({plan.key for plan in plans}) == 4
    lines: list[str] = []
    images = build_layouts(plans, state, lambda _done, _total, line: lines.append(line), jobs=1)
    compiled = [line.split()[-1] for line in lines if "CC " in line]
    assert sorted(compiled[:3]) == sorted(OBJECTS)
    assert compiled[3:4] == ["fs/open.o"]
    assert compiled[4:5] == ["lib/crc32.o"]
    assert sorted(compiled[5:]) == ["fs/open.o", "lib/crc32.o"]
    added = [{name: record.added for name, record in records(image).items() if record.added} for image in images]
    assert added == [
        {},
        {"fs/open.o": ("-O1",)},
        {"fs/open.o": ("-O1",), "lib/crc32.o": ("-O1",)},
        {"lib/crc32.o": ("-O3",)},
    ]
    alone = State(state.root.parent / "alone")
    again = build(plan(recipes[3], source, alone), alone, no_progress)
    assert again.record.key == images[3].record.key
    assert (again.directory / "vmlinux").read_bytes() == (images[3].directory / "vmlinux").read_bytes()


def test_another_program_under_the_name_of_a_pass_makes_its_objects_anew(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    plans = []
    for name in ("sys_shut", "sys_end"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\nexec sed s/sys_close/{name}/g\n")
        program.chmod(0o755)
        rule = {"files": ["fs/open.c"], "by_assembler": True, "passes": ["mine"]}
        plans.append(plan(delegated(rule, programs={"mine": str(program)}), source, state))
    assert plans[0].objects_key == plans[1].objects_key
    one, two = build_layouts(plans, state, no_progress)
    assert "sys_shut" in one.symbols.read_text() and "sys_end" in two.symbols.read_text()


def test_layouts_of_delegated_kernels_are_links_of_the_same_objects(source: KernelSource, state: State) -> None:
    recipe = delegated({"files": ["fs/open.c"], "add": ["-O1"]})
    plans = [plan(recipe.model_copy(update={"layout_seed": seed}), source, state) for seed in (1, 2)]
    lines: list[str] = []
    images = build_layouts(plans, state, lambda _done, _total, line: lines.append(line), jobs=1)
    assert sum("CC " in line for line in lines) == 3
    assert records(images[0]) == records(images[1])


def test_a_file_that_the_compiler_refuses_fails_the_build_with_its_rule(source: KernelSource, state: State) -> None:
    with pytest.raises(BuildFailed) as raised:
        built(delegated({"files": ["fs/open.c"], "add": ["-fno-such-option"]}), source, state)
    assert "-fno-such-option" in str(raised.value)
    assert list(state.images.iterdir()) == []


def test_a_file_that_fails_goes_to_the_reference_where_the_plan_allows_it(source: KernelSource, state: State) -> None:
    recipe = delegated({"files": ["fs/open.c"], "add": ["-fno-such-option"]}, fallback=True)
    image = built(recipe, source, state)
    record = records(image)["fs/open.o"]
    assert (record.answer, record.compiler) == ("fallback", "gcc")
    assert "gcc failed (rule 1)" in record.reason
    assert "ccd: warning: fs/open.c" in (image.directory / "build.log").read_text()


def test_objects_without_a_record_fail_a_strict_build(
    source: KernelSource, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_environment = ccd.environment

    def without_records(build: Path, plan_file: Path, launcher: str) -> dict[str, str]:
        return {
            name: value
            for name, value in real_environment(build, plan_file, launcher).items()
            if name != "KDYNO_RECORDS"
        }

    monkeypatch.setattr(ccd, "environment", without_records)
    with pytest.raises(RecordsIncomplete, match="3 objects were compiled, and ccd has a record of 0"):
        built(delegated(), source, state)
    assert built(delegated(strict=False), source, state).record.objects == {}


def test_an_object_of_another_choice_never_passes_for_the_plans(
    source: KernelSource, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_module, "_forget_changed", lambda _work, _before: False)
    plans = [plan(delegated(*rules), source, state) for rules in ((), ({"files": ["fs/open.c"], "add": ["-O1"]},))]
    with pytest.raises(ObjectStale, match=r"fs/open\.o is not made as .* by gcc, not by gcc -O1"):
        build_layouts(plans, state, no_progress)


def test_a_profile_that_no_object_was_compiled_by_never_passes_for_one_that_was(
    source: KernelSource, state: State, tmp_path: Path
) -> None:
    (tmp_path / "o").mkdir()
    shutil.copy(built(delegated(), source, state).directory / "delegation.jsonl", tmp_path)
    resolved = Resolved(
        reference="gcc",
        compilers={"gcc": Compiler(family="gcc", command=("gcc",))},
        assembler=("as",),
        held=False,
        fallback=False,
        assem=False,
        lint=False,
        programs={},
        rules=(),
        profiles=(ProfileUse(name="autofdo", file="../inputs/autofdo-1", option="-fprofile-sample-use="),),
    )
    with pytest.raises(ProfileUnused, match="no object of this kernel is compiled by the profile `autofdo`"):
        ccd.check(tmp_path / "o", resolved, strict=False)
    assert len(ccd.check(tmp_path / "o", resolved.model_copy(update={"profiles": ()}), strict=False).objects) == 3


def test_a_rule_whose_files_are_not_in_the_configuration_is_noted(source: KernelSource, state: State) -> None:
    image = built(delegated({"files": ["net/socket.c"], "add": ["-O1"]}), source, state)
    assert any("rule 1 of the delegation plan had no file in this configuration" in note for note in image.record.notes)


def test_the_records_of_an_image_are_files_of_it(source: KernelSource, state: State) -> None:
    image = built(delegated(), source, state)
    path = image.directory / "delegation.jsonl"
    path.write_text(path.read_text().replace("gcc", "icc"))
    with pytest.raises(ImageCorrupt, match=r"delegation\.jsonl is not the file that was built"):
        load_image(image.record.key, state)


def test_records_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "r").write_text(json.dumps({"object": "x"}) + "\n")
    with pytest.raises(RecordsUnreadable):
        read_records(tmp_path / "r")


def resolved(*compilers: str, by_assembler: bool = False) -> Resolved:
    rule = ResolvedRule(name="rule 1", files=("**",), compiler=compilers[0], by_assembler=by_assembler)
    return Resolved(
        reference=compilers[0],
        compilers={name: Compiler(family="gcc", command=(name,)) for name in compilers},
        assembler=("as",),
        held=len(compilers) > 1,
        fallback=False,
        assem=False,
        lint=False,
        programs={},
        rules=(rule,),
    )


@pytest.mark.parametrize("symbol", ["LTO_CLANG_FULL", "CFI_CLANG", "CFI", "RANDSTRUCT_FULL"])
def test_what_compilers_can_not_share_is_refused_with_the_reason(symbol: str) -> None:
    with pytest.raises(
        MixRefused, match=rf"CONFIG_{symbol} can't be had with the compilers a and b in one kernel: \w+"
    ):
        refuse_unshared({symbol: "y"}, resolved("a", "b"))
    refuse_unshared({symbol: "n"}, resolved("a", "b"))
    refuse_unshared({symbol: "y"}, resolved("a"))


def test_thin_link_time_optimisation_takes_objects_of_gcc_and_the_intermediate_code_of_one_clang() -> None:
    thin = {"LTO_CLANG_THIN": "y"}
    gcc, first, second = (Compiler(family=family, command=()) for family in ("gcc", "clang", "clang"))
    refuse_unshared(thin, resolved("clang-19").model_copy(update={"compilers": {"clang-19": first, "gcc": gcc}}))
    two = resolved("clang-19").model_copy(update={"compilers": {"clang-19": first, "clang-18": second, "gcc": gcc}})
    with pytest.raises(MixRefused, match=r"compilers clang-18 and clang-19 .* one clang"):
        refuse_unshared(thin, two)


def test_link_time_optimisation_has_no_assembler_to_go_by() -> None:
    with pytest.raises(LtoByAssembler):
        refuse_unshared({"LTO_CLANG_FULL": "y"}, resolved("a", by_assembler=True))


def test_symbols_that_differ_are_listed_by_name() -> None:
    assert held_symbols({"A": "y", "B": "y", "C": "12"}, {"A": "y", "C": "11", "D": "y"}) == [
        ("B", "y", "n"),
        ("C", "12", "11"),
        ("D", "n", "y"),
    ]


def test_a_mix_is_refused_before_anything_is_compiled(source: KernelSource, state: State) -> None:
    needs(CLANG)
    recipe = Recipe.model_validate(
        {
            "toolchain": CLANG,
            "kconfig": {"RANDSTRUCT_FULL": True},
            "delegation": {"rule": [{"files": ["fs/*.c"], "compiler": "gcc"}]},
        }
    )
    with pytest.raises(MixRefused, match="RANDSTRUCT_FULL"):
        built(recipe, source, state)


def test_choices_are_compared_by_what_they_do() -> None:
    one = resolved("a")
    assert one.choice_of("x.c") == ResolvedChoice(compiler="a")
