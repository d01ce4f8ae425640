"""`kdyno lab patch`: which candidate it takes, what the heading says, and that the proven code is the patch's."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from kdyno.base import process
from kdyno.cli.main import main
from kdyno.kernel.routines.edits import edited
from kdyno.kernel.routines.families import RoutineSource, routine_families
from kdyno.kernel.routines.patch import REWRITES, read_rewrite
from kdyno.understand.lab.build import BuiltCandidate, RoutineBuild
from kdyno.understand.lab.code import NoCode, read_function
from kdyno.understand.lab.lines import verdict_text
from kdyno.understand.lab.patch import (
    FamilyNotTimed,
    PatchPlace,
    RoutinePatch,
    TimesUnreadable,
    heading_text,
    kernel_comparison,
    patch_by_times,
    read_times,
    times_of,
    times_paragraphs,
)
from kdyno.understand.lab.timing import RoutineTimes, plan_cells
from kdyno.understand.lab.verdicts import LabTimes, RoutineTimesReport, judge_times
from tests.unit.lab_specimen import compile_routine

FAMILIES = routine_families()
BLOCKS = 12
SIZES = [(16, 3.0), (64, 1.0)]


def times(family: str, factor_by_name: dict[str, float], *, has_load: bool = False, seed: int = 1) -> RoutineTimes:
    """Times of candidates that need so many times the cycles of others, with 1 % of noise."""
    rng = np.random.default_rng(seed)
    model = FAMILIES[family]
    cells = plan_cells(model, rng, SIZES if has_load else ())
    rows = [row for row in model.candidate if row.name in factor_by_name]
    built = tuple(BuiltCandidate(row.name, row, "gcc", (), row.entry, Path("none"), ()) for row in rows)
    factors = np.array([factor_by_name[row.name] for row in rows])
    cycles = 100 * factors * np.exp(rng.normal(0, 0.01, (BLOCKS, len(cells), len(rows))))
    return RoutineTimes(RoutineBuild(model, built, built[0].name, ()), tuple(cells), cycles)


def test_the_fastest_candidate_with_a_patch_is_chosen_over_all_rows() -> None:
    choice = judge_times(times("memset", {"orig": 1.0, "rep-stosb": 0.8, "words": 0.7})).patch
    assert choice.winner.name == "words" and choice.winner.is_faster
    assert choice.winner.ratio == pytest.approx(0.7, rel=0.02)
    assert [(row.name, row.mode) for row in choice.rows][:2] == [("1-8", "warm"), ("9-16", "warm")]
    assert len(choice.rows) == 14 and all(row.winner.name == "words" for row in choice.rows)


def test_a_candidate_without_a_patch_is_not_chosen() -> None:
    model = times("clear_page", {"orig": 1.0, "clzero": 0.5})
    assert judge_times(model).patch.winner.is_own
    assert judge_times(times("crc32c", {"table": 1.0, "three-parts": 0.5})).patch.winner.is_own


def test_the_sizes_of_a_load_decide_alone_if_there_is_one() -> None:
    choice = judge_times(times("memset", {"orig": 1.0, "words": 0.7}, has_load=True)).patch
    assert {row.name for row in choice.rows} == {"load"} and len(choice.rows) == 2


def test_the_own_choice_is_kept_where_nothing_is_faster() -> None:
    choice = judge_times(times("memset", {"orig": 1.0, "rep-stosb": 1.1, "words": 1.2})).patch
    assert choice.winner.is_own and choice.rows == () and not choice.winner.is_faster
    assert verdict_text(choice.winner) == "the kernel's own is best"


def test_times_that_confirm_a_candidate_judge_it_by_all_blocks_whichever_is_the_fastest_there() -> None:
    again = times("memset", {"orig": 1.0, "rep-stosb": 0.8, "words": 0.7}, seed=2)
    confirmed = judge_times(again, chosen_before="rep-stosb").patch
    assert confirmed.winner.name == "rep-stosb" and confirmed.winner.ratio == pytest.approx(0.8, rel=0.02)
    again.cycles[::2, :, 1] *= 1.5  # the blocks that chose nothing count as well
    assert judge_times(again, chosen_before="rep-stosb").patch.winner.verdict == "undecided"


def report_of(*families: RoutineTimesReport) -> LabTimes:
    return LabTimes(cpu="a CPU", source="Linux 6.12", arch="x86_64", blocks=BLOCKS, families=families)


def decided(first: RoutineTimes, again: RoutineTimes | None = None) -> str:
    """Why times of memset for `words` give no patch."""
    report = judge_times(first)
    heading = report_of(report)
    repeated = judge_times(again, chosen_before="words") if again else None
    patch = patch_by_times(FAMILIES["memset"], heading, report, repeated, cast("PatchPlace", None))
    assert not patch.text
    return patch.summary


def test_a_candidate_that_is_not_faster_again_has_no_patch() -> None:
    lost = decided(times("memset", {"orig": 1.0, "words": 0.7}), times("memset", {"orig": 1.0, "words": 1.0}, seed=2))
    assert lost.startswith("memset: words -3") and "faster; timed again" in lost
    assert lost.endswith("equivalent: no patch: it has to be faster both times")


def test_the_heading_has_the_first_verdict_with_its_rows_and_the_second_one() -> None:
    first = judge_times(times("memset", {"orig": 1.0, "words": 0.7}))
    again = judge_times(times("memset", {"orig": 1.0, "words": 0.6}, seed=2), chosen_before="words")
    once = list(times_paragraphs(report_of(first), first, None))
    twice = list(times_paragraphs(report_of(first), first, again))
    assert once == twice[:-1] and len(once) == 1 + len(first.patch.rows)
    assert once[0].startswith("Cycles against orig, which a kernel takes on a CPU: -30")
    assert once[1].startswith("- 1-8 bytes, warm: ")
    assert twice[-1].startswith("Timed again, with other sizes and link orders: -40")


def test_a_candidate_that_is_slower_in_some_rows_has_no_patch() -> None:
    model = times("memset", {"orig": 1.0, "words": 0.7})
    shortest = next(cell.size_class for cell in model.cells if not cell.fixed)
    model.cycles[:, [cell.size_class == shortest for cell in model.cells], 1] *= 2
    assert "faster: no patch: it is slower at 1-8 warm, 1-8 cold; weigh sizes by a load (--sizes)" in decided(model)


def test_no_candidate_is_shown_where_the_kernels_own_is_the_best() -> None:
    own = decided(times("memset", {"orig": 1.0, "words": 1.2}))
    assert own == "memset: no patch: orig, which a kernel takes, is the best here"


def made(family: str, candidate: str, own: str = "kernel") -> RoutinePatch:
    return RoutinePatch(family, "faster", "a patch", candidate, own)


@pytest.mark.parametrize(
    ("patches", "sides"),
    [
        (
            [made("memset", "words", "orig"), made("strlen", "words")],
            "plain routines.memset=words,routines.strlen=words",
        ),
        ([made("memcpy", "words", "rep-movsb")], "routines.memcpy=rep-movsb routines.memcpy=words"),
        ([made("clear_page", "clzero", "orig"), made("strlen", "words")], "plain routines.strlen=words"),
        ([RoutinePatch("sort", "no patch", ""), made("strlen", "words", "")], "plain routines.strlen=words"),
    ],
)
def test_the_command_that_measures_patches_in_kernels_compares_with_what_a_kernel_takes(
    patches: list[RoutinePatch], sides: str
) -> None:
    assert kernel_comparison(patches) == f"kdyno ab --machine uml {sides} --layouts 12"


def test_no_command_measures_patches_that_no_kernel_for_um_takes() -> None:
    assert kernel_comparison([RoutinePatch("sort", "no patch", "")]) == ""


def report(tmp_path: Path) -> Path:
    family = judge_times(times("memset", {"orig": 1.0, "words": 0.7}))
    path = tmp_path / "times.json"
    path.write_text(report_of(family).model_dump_json(), encoding="utf-8")
    return path


def test_times_are_read_for_their_family_and_architecture(tmp_path: Path) -> None:
    path = report(tmp_path)
    read = read_times(path, "memset")
    assert times_of(read, "memset", "x86_64", path).patch.winner.name == "words"
    with pytest.raises(FamilyNotTimed, match="no times of strlen for x86_64"):
        times_of(read, "strlen", "x86_64", path)
    with pytest.raises(FamilyNotTimed, match="no times of memset for um"):
        times_of(read, "memset", "um", path)


def test_a_file_without_times_is_refused_with_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    path.write_text('{"cpu": 3}', encoding="utf-8")
    with pytest.raises(TimesUnreadable, match="cpu: a text in quotation marks is expected"):
        read_times(path, "memset")
    with pytest.raises(TimesUnreadable, match="No such file"):
        read_times(tmp_path / "none.json", "memset")


def test_a_heading_has_short_lines_and_lists_without_blank_lines() -> None:
    text = heading_text(["memset: words", "What changes:", "- one", "- two " + "word " * 20, "x" * 80])
    assert text.startswith("memset: words\n\nWhat changes:\n\n- one\n- two word")
    assert "\n  word" in text and text.endswith(f"\n\n{'x' * 80}\n")


KERNEL_FILE = """\
#include <linux/linkage.h>

SYM_FUNC_START({name})
	ALTERNATIVE "jmp {local}", "", X86_FEATURE_FSRM
	RET
SYM_FUNC_END({name})

SYM_FUNC_START_LOCAL({local})
	RET
SYM_FUNC_END({local})
"""


def rewrites_in_assembler() -> list[tuple[str, RoutineSource]]:
    return [
        (name, row)
        for name, family in FAMILIES.items()
        for row in family.candidate
        if row.origin == "kdyno" and row.file.endswith(".S") and row.edit
    ]


@pytest.mark.parametrize(("family", "row"), rewrites_in_assembler(), ids=lambda value: getattr(value, "name", value))
def test_a_patched_assembler_file_has_the_very_bytes_of_the_candidate(
    family: str, row: RoutineSource, tmp_path: Path
) -> None:
    text = KERNEL_FILE.format(name=row.edit[0].function, local=f"{family}_orig")
    for edit in row.edit:
        text = edited(text, edit, read_rewrite(row, edit), row.words)
    source = tmp_path / "patched.S"
    source.write_text(text, encoding="utf-8")
    (tmp_path / "alone").mkdir()
    patched = compile_routine(source, row.model_copy(update={"words": ()}), tmp_path)
    alone = compile_routine(REWRITES / row.file, row, tmp_path / "alone")
    assert read_function(patched.object, patched.symbol).content == read_function(alone.object, alone.symbol).content


def test_code_is_read_of_the_section_that_the_function_is_in(tmp_path: Path) -> None:
    source = tmp_path / "two.s"
    source.write_text(
        ".text\n.globl one\none: nop\n ret\n.size one, . - one\n"
        '.section .text.two,"ax"\n.globl two\ntwo: xorl %eax, %eax\n ret\n.size two, . - two\n'
        ".globl three\nthree: ret\n",
        encoding="ascii",
    )
    target = tmp_path / "two.o"
    process.output(["as", source, "-o", target])
    assert read_function(target, "one").content == b"\x90\xc3"
    assert read_function(target, "two").content == b"\x31\xc0\xc3"
    with pytest.raises(NoCode, match="no function three of a known size"):
        read_function(target, "three")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["memset", "strlen", "--candidate", "words"], "--candidate is for one family, and there are several"),
        (["memset", "--candidate", "stosb"], "memset has no candidate 'stosb'"),
        (["memst"], "'memst' is not a family of routines"),
        (["memset", "-o", "/nowhere/at/all"], "it is not a directory, or not in one"),
        (["memset", "--times", "/nowhere.json"], "/nowhere.json does not hold times of `kdyno lab time --json`"),
    ],
)
def test_a_request_that_can_not_be_met_ends_before_anything_is_timed(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "patch", *words]) == 1
    assert message in capsys.readouterr().err
