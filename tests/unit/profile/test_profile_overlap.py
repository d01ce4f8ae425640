"""What two profiles have in common: numbers that can be checked by hand, and clang's profiles by llvm-profdata."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kdyno.base.llvm_tools import LlvmToolMissing, find_tool
from kdyno.cli.main import main
from kdyno.profile.clang import NotAProfile, ProfileCutShort, TwoKinds, merge_samples, samples
from kdyno.profile.overlap import overlap
from kdyno.profile.shares import NothingRanIn
from tests.unit.pmu_specimen import FUNCTIONS, specimen, write

CLANG = """\
vfs_read:300:10
 1: 10
 2: 20
vfs_write:100:5
 1: 5
"""


@pytest.fixture(name="whole")
def specimen_file(tmp_path: Path) -> Path:
    return write(tmp_path / "whole.kpmu")


@pytest.fixture(name="pipe")
def pipe_file(tmp_path: Path) -> Path:
    return write(tmp_path / "pipe.kpmu", regions={2: specimen().regions[2]})


def profile(path: Path, text: str = CLANG) -> Path:
    try:
        find_tool("llvm-profdata")
    except LlvmToolMissing:
        pytest.skip("no llvm-profdata here")
    path.write_text(text)
    return path


def test_a_record_is_all_alike_with_itself(whole: Path) -> None:
    result = overlap(whole, whole)
    assert result.same_vmlinux
    assert [result.alike_by_functions, result.alike_by_blocks] == pytest.approx([1, 1])
    assert [result.covered_by_functions, result.covered_by_blocks] == pytest.approx([1, 1])


def test_what_another_benchmark_has_seen_is_told_by_benchmark(whole: Path, pipe: Path) -> None:
    """lat_pipe ran one of the functions of lat_syscall.null, whose share there is 70 of 185 instructions."""
    result = overlap(pipe, whole)
    shares = {row.benchmark: row.covered_by_functions for row in result.benchmarks}
    assert shares == pytest.approx({"lat_syscall.null": 70 / 185, "lat_pipe.roundtrip": 1})
    assert result.covered_by_functions == pytest.approx((70 / 185 + 1) / 2)
    assert [row.alike for row in result.benchmarks] == [None, pytest.approx(1)]
    assert (result.functions_a, result.functions_b, result.functions_both) == (1, 5, 1)
    first = result.functions[0]
    assert first.function == "do_work.constprop.0"
    assert [first.a, first.b] == pytest.approx([1, (70 / 185 + 1) / 2])


def test_blocks_count_as_seen_where_one_starts(whole: Path, pipe: Path) -> None:
    blocks = {row.benchmark: row.covered_by_blocks for row in overlap(pipe, whole).benchmarks}
    assert blocks["lat_syscall.null"] == pytest.approx(60 / (40 + 20 + 60 + 10 + 20 + 5 + 30))


def test_records_of_two_kernels_are_compared_by_names_of_the_source(whole: Path, tmp_path: Path) -> None:
    """The other compiler made no clone, and put everything elsewhere."""
    moved = tuple(
        replace(function, address=function.address + 0x40, name=function.name.replace(".constprop.0", ""))
        for function in FUNCTIONS
    )
    result = overlap(whole, write(tmp_path / "other.kpmu", image="cd" * 32, functions=moved))
    assert result.same_vmlinux is False
    assert result.alike_by_functions == pytest.approx(1)
    assert result.alike_by_blocks is None and result.covered_by_blocks is None


def test_profiles_of_clang_are_compared_by_samples(tmp_path: Path) -> None:
    one = profile(tmp_path / "one", CLANG)
    other = profile(tmp_path / "other", CLANG.replace("vfs_write", "vfs_open"))
    result = overlap(one, other)
    assert result.kind == "clang" and result.same_vmlinux is None
    assert result.alike_by_functions == pytest.approx(0.75)
    assert result.covered_by_functions == pytest.approx(0.75)
    assert result.alike_by_lines is not None and 0 < result.alike_by_lines < 1
    assert overlap(one, one).alike_by_lines == pytest.approx(1)


def test_profiles_of_clang_are_merged_with_weights_into_a_form_of_their_own(tmp_path: Path) -> None:
    one, other = profile(tmp_path / "one"), profile(tmp_path / "other", CLANG.replace("vfs_write", "vfs_open"))
    assert merge_samples([one, other], [3, 1], tmp_path / "merged") == 3
    assert samples(tmp_path / "merged") == {"vfs_read": 1200, "vfs_write": 300, "vfs_open": 100}
    assert (tmp_path / "merged").read_text().startswith("vfs_read:1200:")


def test_two_kinds_of_profiles_are_not_mixed(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(TwoKinds, match=r"whole\.kpmu is a PMU record, but .*one is a profile of clang"):
        overlap(whole, profile(tmp_path / "one"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("nonsense\n", "Unrecognized"),
        (CLANG.replace("100", "many"), "vfs_write:many:5"),
        ("\x00\x02", "Unrecognized"),
        ("vfs_read:0:0\n", "it has no samples"),
    ],
)
def test_a_file_that_is_no_profile_is_refused_with_the_reason(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(NotAProfile, match=why):
        overlap(profile(tmp_path / "one", text), profile(tmp_path / "other"))


def test_a_text_that_ends_amid_a_line_is_cut_short(tmp_path: Path) -> None:
    with pytest.raises(ProfileCutShort):
        samples(profile(tmp_path / "one", CLANG[:-2]))


def test_a_file_that_is_not_there_is_said_to_be_missing(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(NotAProfile, match="it does not exist"):
        overlap(whole, tmp_path / "none")


def test_a_record_in_which_nothing_ran_is_refused(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(NothingRanIn):
        overlap(whole, write(tmp_path / "nothing.kpmu", regions={}))


def test_tables_and_json_say_the_same(whole: Path, pipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "overlap", str(pipe), str(whole), "--top", "1"]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "alike: 68.9% by functions, 66.2% by blocks",
        "of B's instructions A has seen: 68.9% by functions, 66.2% by blocks",
        "functions: 1 in A, 5 in B, 1 in both",
        "",
        "benchmark of B      seen by functions  seen by blocks  alike by functions",
        "lat_syscall.null               37.84%          32.43%",
        "lat_pipe.roundtrip            100.00%         100.00%             100.00%",
        "",
        "      A       B  function",
        "100.00%  68.92%  do_work.constprop.0",
        "and 4 more functions (--top N)",
    ]
    assert main(["profile", "overlap", str(pipe), str(whole), "--top", "1", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["alike_by_functions"] == pytest.approx(0.689, abs=1e-3) and len(printed["functions"]) == 1


def test_merge_says_what_it_made_and_shows_how_many_boots(
    whole: Path, pipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "merged.kpmu"
    assert main(["profile", "merge", str(whole), str(pipe), "-o", str(out)]) == 0
    assert "2 boots, 2 benchmarks, 7 functions" in capsys.readouterr().err
    assert main(["profile", "show", str(out)]) == 0
    assert "2 boots merged" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["merge", "RECORD", "--weights", "2", "-o", "OUT"], "records cannot be weighted"),
        (["merge", "CLANG", "CLANG", "--weights", "2", "-o", "OUT"], "--weights has 1 weights for 2 profiles"),
        (["merge", "RECORD", "CLANG", "-o", "OUT"], "their counts cannot be combined"),
        (["merge", "RECORD", "-o", "/nowhere/out"], "can't write /nowhere/out"),
    ],
)
def test_what_can_not_be_merged_is_said_in_one_message(
    whole: Path, tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"RECORD": str(whole), "CLANG": str(profile(tmp_path / "one")), "OUT": str(tmp_path / "out")}
    assert main(["profile", *(names.get(word, word) for word in words)]) == 1
    err = capsys.readouterr().err
    assert message in err and "hint: " in err
    assert not (tmp_path / "out").exists()
