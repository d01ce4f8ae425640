"""The knob `routines`: the patch by which a source takes candidates of kdyno lab, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base.cpu import read_cpu
from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.kernel.arch import UM, X86_64, Arch
from kdyno.kernel.image import SourceIdentity
from kdyno.kernel.knobs import KnobContext, routines
from kdyno.kernel.patches import Patch, apply, read_patch
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.routines.edits import EditFailed, edited, find_function
from kdyno.kernel.routines.families import SourceEdit, UnknownCandidate, UnknownRoutine, routine_families
from kdyno.kernel.routines.patch import NoRoutinePatch, RoutineUnfit, routines_patch
from kdyno.kernel.source import KernelSource
from kdyno.kernel.toolchain import Toolchain, ToolchainIdentity

MEMSET = """\
#include <linux/export.h>

/*
 * ISO C memset
 */
SYM_FUNC_START(__memset)
	ALTERNATIVE "jmp memset_orig", "", X86_FEATURE_FSRS

	movq %rdi,%r9
	movb %sil,%al
	movq %rdx,%rcx
	rep stosb
	movq %r9,%rax
	RET
SYM_FUNC_END(__memset)
EXPORT_SYMBOL(__memset)

SYM_FUNC_ALIAS_MEMFUNC(memset, __memset)
EXPORT_SYMBOL(memset)

SYM_FUNC_START_LOCAL(memset_orig)
	movq %rdi,%r10
	RET
SYM_FUNC_END(memset_orig)
"""
STRING = """\
// SPDX-License-Identifier: GPL-2.0
#include <linux/string.h>

size_t strlen(const char *s);

size_t user(const char *s)
{
	return strlen(s);
}

#ifndef __HAVE_ARCH_STRLEN
/**
 * strlen - Find the length of a string
 */
size_t strlen(const char *s)
{
	const char *sc;

	for (sc = s; *sc != '\\0'; ++sc) {
		/* nothing */;
	}
	return sc - s;
}
EXPORT_SYMBOL(strlen);
#endif
"""
FILES = {"arch/x86/lib/memset_64.S": MEMSET, "lib/string.c": STRING}


@pytest.fixture
def source(tmp_path: Path) -> KernelSource:
    for name, text in FILES.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    identity = SourceIdentity(spec="toy", identity="tree:0", version="6.12", origin="toy")
    return KernelSource(identity=identity, tree=tmp_path / "tree")


def context(source: KernelSource, arch: Arch = X86_64) -> KnobContext:
    identity = ToolchainIdentity(name="gcc", family="gcc", version="12.2.0", banner="", digest="")
    toolchain = Toolchain(identity=identity, command="gcc", make=("CC=gcc",))
    state = State(source.tree.parent / "state")
    return KnobContext(source=source, toolchain=toolchain, cpu=read_cpu, state=state, arch=arch)


def patched(patch: str, source: KernelSource) -> dict[str, str]:
    """The files after the patch, by their names."""
    path = source.tree.parent / "routines.patch"
    path.write_text(patch, encoding="utf-8")
    assert apply(read_patch(path), source.tree, "toy") == []
    return {name: (source.tree / name).read_text(encoding="utf-8") for name in FILES}


def test_on_x86_a_condition_that_the_hypervisor_hides_becomes_one_that_it_reports(source: KernelSource) -> None:
    after = patched(routines_patch({"memset": "rep-stosb"}, source, "x86_64"), source)
    assert after["arch/x86/lib/memset_64.S"] == MEMSET.replace("X86_FEATURE_FSRS", "X86_FEATURE_ERMS")


def test_on_um_which_patches_no_alternative_the_jump_is_removed(source: KernelSource) -> None:
    after = patched(routines_patch({"memset": "rep-stosb"}, source, "um"), source)["arch/x86/lib/memset_64.S"]
    assert "SYM_FUNC_START(__memset)\n\tmovq %rdi,%r9\n" in after
    assert "memset_orig" not in after and "ALTERNATIVE" not in after
    assert "EXPORT_SYMBOL(memset)" in after and "EXPORT_SYMBOL(__memset)" in after


def test_a_rewrite_keeps_the_symbols_and_returns_by_the_macro_of_return_thunks(source: KernelSource) -> None:
    after = patched(routines_patch({"memset": "words-rep-from-256"}, source, "x86_64"), source)
    text = after["arch/x86/lib/memset_64.S"]
    assert "cmpq\t$256, %rdx" in text and "REP_FROM" not in text and "#ifdef" not in text
    assert "ret\n" not in text and text.count("\tRET\n") > 4
    assert text.index("ISO C memset") < text.index("SYM_FUNC_START(__memset)") < text.index("SYM_FUNC_END(__memset)")
    assert "EXPORT_SYMBOL(memset)" in text and "SYM_FUNC_ALIAS_MEMFUNC(memset, __memset)" in text


def test_a_function_in_c_gets_its_helpers_before_its_own_comment(source: KernelSource) -> None:
    text = patched(routines_patch({"strlen": "words"}, source, "x86_64"), source)["lib/string.c"]
    assert text.index("strlen_zeros(unsigned long word)") < text.index("/**\n * strlen - Find") < text.index("while (!")
    assert 'include "rewrite.h"' not in text and text.count("SPDX") == 1
    assert text.startswith(STRING[: STRING.index("/**")]) and text.endswith("}\nEXPORT_SYMBOL(strlen);\n#endif\n")


def test_routines_of_one_recipe_are_one_patch_with_the_same_bytes_each_time(source: KernelSource) -> None:
    choices = {"strlen": "words", "memset": "rep-stosb"}
    patch = routines_patch(choices, source, "x86_64")
    assert patch == routines_patch(dict(reversed(choices.items())), source, "x86_64")
    assert [line for line in patch.splitlines() if line.startswith("+++")] == [f"+++ b/{name}" for name in FILES]


def test_the_knob_contributes_its_patch_and_nothing_without_a_routine(source: KernelSource) -> None:
    [patch] = routines.contribute({"memset": "rep-stosb"}, context(source)).patches
    [um_patch] = routines.contribute({"memset": "rep-stosb"}, context(source, UM)).patches
    assert isinstance(patch, Patch) and patch.digest != um_patch.digest
    assert routines.contribute({}, context(source)).patches == ()


@pytest.mark.parametrize(
    ("choices", "error", "message", "advice"),
    [
        ({"memst": "words"}, UnknownRoutine, "'memst' is not a family of routines", "did you mean memset? choose from"),
        ({"memset": "stosb"}, UnknownCandidate, "memset has no candidate 'stosb'", "did you mean rep-stosb?"),
    ],
)
def test_names_are_checked_before_there_is_a_source(
    choices: dict[str, str], error: type[UserError], message: str, advice: str, source: KernelSource
) -> None:
    with pytest.raises(error) as raised:
        routines.check(choices, context(source))
    assert str(raised.value) == message and raised.value.advice.startswith(advice)


@pytest.mark.parametrize(
    ("choices", "arch", "advice"),
    [
        ({"memset": "orig"}, X86_64, "choose from rep-stosb, words"),
        ({"clear_page": "movnti"}, UM, "remove `clear_page` from the routines"),
    ],
)
def test_a_candidate_without_a_patch_is_refused(
    choices: dict[str, str], arch: Arch, advice: str, source: KernelSource
) -> None:
    with pytest.raises(NoRoutinePatch) as raised:
        routines.contribute(choices, context(source, arch))
    assert raised.value.advice.startswith(advice)


def test_a_source_that_the_patch_does_not_fit_is_refused_with_the_reason(source: KernelSource) -> None:
    with pytest.raises(RoutineUnfit, match=r"it has no lib/sort\.c"):
        routines.contribute({"sort": "insertion-up-to-24"}, context(source))
    (source.tree / "arch/x86/lib/memset_64.S").write_text(MEMSET.replace("FSRS", "ERMS"), encoding="utf-8")
    with pytest.raises(RoutineUnfit, match=r"memset_64\.S has 'X86_FEATURE_FSRS' 0 times"):
        routines.contribute({"memset": "rep-stosb"}, context(source))
    (source.tree / "lib/string.c").write_text("int strlen;\n", encoding="utf-8")
    with pytest.raises(RoutineUnfit, match="there are 0 functions strlen"):
        routines.contribute({"strlen": "words"}, context(source))


def test_an_image_that_is_built_already_takes_no_routine() -> None:
    with pytest.raises(ValueError, match="`routines` would build it otherwise"):
        Recipe.model_validate({"image": "/boot/vmlinuz", "routines": {"memset": "rep-stosb"}})


def test_only_a_definition_is_a_function() -> None:
    lines = STRING.splitlines(keepends=True)
    first, end = find_function(lines, "strlen", is_assembler=False)
    assert lines[first] == "size_t strlen(const char *s)\n" and lines[end] == "EXPORT_SYMBOL(strlen);\n"
    with pytest.raises(EditFailed, match="there are 2 functions strlen"):
        find_function([*lines, *lines], "strlen", is_assembler=False)


def test_a_text_that_is_twice_in_a_function_is_not_replaced() -> None:
    edit = SourceEdit(file="a.c", function="strlen", way="text", old="sc", new="at")
    with pytest.raises(EditFailed, match="has 'sc' 5 times"):
        edited(STRING, edit, "", ())


def test_every_edit_names_a_function_that_its_rewrite_has() -> None:
    for family in routine_families().values():
        for candidate in family.candidate:
            for edit in candidate.edit:
                assert edit.way != "rewrite" or edit.function == candidate.entry, candidate.name
                assert (edit.way == "text") == bool(edit.old), candidate.name
