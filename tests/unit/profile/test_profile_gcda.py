"""gcc's counters: read from files that gcc's own programs wrote, and completed so that gcc compiles by them."""

from __future__ import annotations

import struct
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdyno.base.errors import UserError
from kdyno.profile.counters import LARGEST, CountTooLarge, NothingCounted
from kdyno.profile.gcda import (
    ARCS,
    FUNCTION,
    MAGIC,
    MOST_COUNTERS,
    GcdaDamaged,
    GcovFile,
    GcovFunction,
    NoSummary,
    NotGcda,
    OtherGcda,
    OtherKindOfCounters,
    compiler_of,
    encode_gcda,
    read_gcda,
)
from kdyno.profile.gcda_sums import (
    HOTTEST,
    NoSuchThreshold,
    OtherBuild,
    hot_summary,
    require_counts,
    require_same_build,
    sum_files,
)
from tests.unit.gcda_specimen import COMPILERS, NAME, as_kernel, counted, instrument, run, sections

HEADER = struct.pack("<4I", int.from_bytes(MAGIC, "little"), int.from_bytes(b"B22*", "big"), 7, 0)
SMALL = GcovFile("B22*", 7, (GcovFunction(1, 2, 3, (4, 0, 6)), GcovFunction(8, 9, 10, (0, 0))), (1, 6), 0, "a.gcda")


@pytest.fixture(scope="module", params=COMPILERS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, bytes]:
    """A compiler, a directory with its program, and the .gcda file of one run."""
    directory = tmp_path_factory.mktemp("gcda")
    instrument(request.param, directory)
    return request.param, directory, counted(directory, 1000)


def test_a_file_of_gcc_is_read_and_written_again_byte_for_byte(program: tuple[str, Path, bytes]) -> None:
    compiler, _, content = program
    file = read_gcda(content, "program.gcda")
    assert encode_gcda(file) == content
    release = subprocess.check_output([compiler, "-dumpfullversion"], text=True).strip()
    assert compiler_of(file.version) == release.rpartition(".")[0]
    assert len(file.functions) == 6 and file.summary == (1, 1000)
    assert sum(any(function.arcs) for function in file.functions) == 5


def test_a_kernels_file_has_the_same_counters_and_no_summary(program: tuple[str, Path, bytes]) -> None:
    file = read_gcda(program[2], "a")
    zeros = struct.pack("<i", -8 * len(next(function.arcs for function in file.functions if not any(function.arcs))))
    kernels = as_kernel(program[2]).replace(zeros, struct.pack("<i", -struct.unpack("<i", zeros)[0]) + bytes(8))
    assert read_gcda(kernels, "b") == replace(file, summary=None) == read_gcda(as_kernel(program[2]), "b")


def test_gcc_finds_nothing_hot_or_cold_in_a_kernels_file_until_it_has_a_summary(
    program: tuple[str, Path, bytes],
) -> None:
    compiler, directory, content = program
    kernels = as_kernel(content)
    lacking = sections(compiler, directory, kernels)
    assert {lacking[name] for name in ("five", "hundred", "times", "never")} == {".text"}
    complete = encode_gcda(replace(read_gcda(kernels, "a"), summary=hot_summary(100)))
    placed = sections(compiler, directory, complete)
    assert placed["hundred"] == placed["times"] == ".text.hot"
    assert placed["five"] == ".text" and placed["never"] == ".text.unlikely"


@pytest.mark.parametrize(
    ("hot", "cold", "hundred", "five"),
    [
        (100, 0, ".text.hot", ".text"),
        (101, 0, ".text", ".text"),
        (1000, 4, ".text", ".text"),
        (1000, 5, ".text", ".text.unlikely"),
    ],
)
def test_gcc_draws_the_line_where_the_summary_says(
    program: tuple[str, Path, bytes], hot: int, cold: int, hundred: str, five: str
) -> None:
    compiler, directory, content = program
    profile = encode_gcda(replace(read_gcda(content, "a"), summary=hot_summary(hot, cold)))
    placed = sections(compiler, directory, profile)
    assert (placed["hundred"], placed["five"]) == (hundred, five)


def test_what_never_ran_in_training_stays_where_it_was_with_partial_training(program: tuple[str, Path, bytes]) -> None:
    compiler, directory, content = program
    profile = encode_gcda(replace(read_gcda(content, "a"), summary=hot_summary(100)))
    placed = sections(compiler, directory, profile, "-fprofile-partial-training")
    assert placed["never"] == ".text" and placed["hundred"] == ".text.hot"


@pytest.mark.parametrize("output", ["program.o", "fs/open.o", "../odd name/open.o", "a.b/c.d.o"])
def test_gcc_finds_a_profile_in_a_directory_by_the_name_of_the_object(
    program: tuple[str, Path, bytes], output: str, tmp_path: Path
) -> None:
    compiler, directory, content = program
    for name in ("odd name", "work/fs", "work/a.b", "profiles"):
        (tmp_path / name).mkdir(parents=True)
    working = tmp_path / "work"
    (working / f"{NAME}.c").write_bytes((directory / f"{NAME}.c").read_bytes())
    name = "#".join("^" if part == ".." else part for part in f"{working}/{output}".removesuffix(".o").split("/"))
    (tmp_path / "profiles" / f"{name}.gcda").write_bytes(content)
    words = (compiler, "-O2", f"-fprofile-use={tmp_path}/profiles", "-Wmissing-profile", "-Werror", "-c", f"{NAME}.c")
    run(working, *words, "-o", output)
    with pytest.raises(subprocess.CalledProcessError) as lacking:
        run(working, *words, "-o", "other.o")
    assert "other.gcda" in lacking.value.stderr and "file not found" in lacking.value.stderr


def test_gcc_knows_a_static_function_only_under_the_same_names_of_source_and_object(
    program: tuple[str, Path, bytes], tmp_path: Path
) -> None:
    compiler, _, _ = program
    (tmp_path / "o").mkdir()
    (tmp_path / "a.c").write_text(
        "volatile int sink;\nstatic __attribute__((noinline)) void own(int n) { if (n) sink = n; }\n"
        "void all(int n) { own(n); }\nint main(void) { all(3); return 0; }\n"
    )

    def idents(working: str, source: str, output: str) -> set[int]:
        directory = tmp_path / working
        run(directory, compiler, "-O2", "-fprofile-arcs", "-c", source, "-o", output)
        run(directory, compiler, output, "-lgcov", "-o", "a")
        run(directory, f"{directory}/a")
        content = Path(directory, output).with_suffix(".gcda").read_bytes()
        return {function.ident for function in read_gcda(content, "a").functions}

    first = idents("o", "../a.c", "a.o")
    (tmp_path / "other").mkdir()
    assert idents("other", "../a.c", "a.o") == first and len(first) == 3
    for source, output in ((f"{tmp_path}/a.c", "a.o"), ("../a.c", "b.o"), ("../a.c", f"{tmp_path}/o/a.o")):
        assert len(idents("o", source, output) & first) == 2


def test_counts_that_do_not_add_up_are_an_error_unless_gcc_corrects_them(program: tuple[str, Path, bytes]) -> None:
    compiler, directory, content = program
    file = read_gcda(content, "a")
    odd = tuple(
        replace(function, arcs=tuple(index % 2 * 9 for index in range(len(function.arcs))))
        for function in file.functions
    )
    profile = encode_gcda(replace(file, functions=odd))
    with pytest.raises(subprocess.CalledProcessError) as refused:
        sections(compiler, directory, profile)
    assert "profile data is not flow-consistent" in refused.value.stderr
    assert sections(compiler, directory, profile, "-fprofile-correction")["five"].startswith(".text")


def test_added_files_are_those_that_gcov_tool_merges(program: tuple[str, Path, bytes], tmp_path: Path) -> None:
    compiler, directory, _ = program
    contents = []
    for number, times in enumerate((1000, 77)):
        (directory / f"{NAME}.gcda").unlink(missing_ok=True)
        contents.append(counted(directory, times))
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "a.gcda").write_bytes(contents[-1])
    tool = compiler.replace("gcc", "gcov-tool")
    run(tmp_path, tool, "merge", "-o", "merged", "0", "1")
    files = [read_gcda(content, "a") for content in contents]
    sum_max = sum(file.summary[1] for file in files if file.summary)
    merged = encode_gcda(sum_files([(file, 1) for file in files], (2, sum_max)))
    assert merged == (tmp_path / "merged" / "a.gcda").read_bytes()
    run(tmp_path, tool, "rewrite", "-s", "0.3", "-o", "scaled", "0")
    scaled = read_gcda((tmp_path / "scaled" / "a.gcda").read_bytes(), "a")
    for ours, theirs in zip(sum_files([(files[0], 0.3)]).functions, scaled.functions, strict=True):
        # gcov-tool rounds down, also to zero
        assert all(abs(one - other) <= 1 for one, other in zip(ours.arcs, theirs.arcs, strict=True))


def test_whole_weights_keep_counts_exact_and_others_keep_what_ran() -> None:
    large = replace(SMALL, functions=(GcovFunction(1, 2, 3, (2**60 + 1, 0)),))
    assert sum_files([(large, 1)]).functions[0].arcs == (2**60 + 1, 0)
    assert [function.arcs for function in sum_files([(SMALL, 2), (SMALL, 3)]).functions] == [(20, 0, 30), (0, 0)]
    assert [function.arcs for function in sum_files([(SMALL, 0.01)]).functions] == [(1, 0, 1), (0, 0)]
    assert [function.arcs for function in sum_files([(SMALL, 0.4), (SMALL, 0.0)]).functions] == [(2, 0, 2), (0, 0)]
    with pytest.raises(CountTooLarge):
        sum_files([(large, 1), (large, 1)])
    assert LARGEST == 2 * 2**60 - 1


def test_files_of_another_build_are_told_by_name() -> None:
    for other, what in (
        (replace(SMALL, stamp=8), "stamps"),
        (replace(SMALL, version="B23*"), "compilers"),
        (replace(SMALL, functions=SMALL.functions[:1]), "functions"),
        (replace(SMALL, functions=(replace(SMALL.functions[0], cfg_checksum=4), SMALL.functions[1])), "functions"),
        (replace(SMALL, functions=(replace(SMALL.functions[0], arcs=(4, 0)), SMALL.functions[1])), "functions"),
    ):
        with pytest.raises(OtherBuild, match=f"b.gcda and a.gcda are from different builds: the {what} differ"):
            require_same_build([SMALL, replace(other, name="b.gcda")])
        with pytest.raises(OtherBuild):
            sum_files([(SMALL, 1), (other, 1)])


def test_a_profile_without_summary_or_counts_or_of_another_gcc_is_refused() -> None:
    with pytest.raises(NoSummary, match=r"a\.gcda has no object summary"):
        encode_gcda(replace(SMALL, summary=None))
    require_counts([SMALL], "training")
    with pytest.raises(NothingCounted, match="training has no counts: all 2 counters are 0"):
        require_counts([replace(SMALL, functions=SMALL.functions[1:])], "training")
    with pytest.raises(NothingCounted):
        require_counts([], "training")


def test_versions_are_those_of_gccs_headers() -> None:
    assert [compiler_of(version) for version in ("B22*", "B42*", "B51*", "B60*")] == ["12.2", "14.2", "15.1", "16.0"]


def test_thresholds_that_gcc_can_not_have_are_refused() -> None:
    assert hot_summary(1000, 20) == (401, 10_000_000)
    assert hot_summary(HOTTEST)[1] < 2**32 <= (HOTTEST + 1) * 10_000
    for hot, cold in ((HOTTEST + 1, 0), (1, 0), (401, 20), (0, 0)):
        with pytest.raises(NoSuchThreshold):
            hot_summary(hot, cold)


def function_record(*words: int) -> bytes:
    return struct.pack("<5I", FUNCTION, 12, 1, 2, 3) + b"".join(struct.pack("<I", word % 2**32) for word in words)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", NotGcda, "it is empty"),
        (b"\x7fELF", NotGcda, "it does not begin with the magic number"),
        (b"gcda" + HEADER[4:], NotGcda, "a big-endian machine"),
        (HEADER[:9], GcdaDamaged, "it is truncated"),
        (HEADER[:4] + b"\x00" * 12, GcdaDamaged, "no valid version of gcc"),
        (HEADER[:4] + b"*11B" + HEADER[8:], OtherGcda, r"a file of gcc 11\.1: expected"),
        (HEADER + function_record(ARCS, 7), GcdaDamaged, "a length of 7 bytes"),
        (HEADER + function_record(ARCS, 2**31 - 8), GcdaDamaged, "more than 1,048,576 counters"),
        (HEADER + function_record(ARCS, -(2**31)), GcdaDamaged, "more than 1,048,576 counters"),
        (HEADER + function_record(ARCS, -8 * MOST_COUNTERS) * 2, GcdaDamaged, "more than 1,048,576 counters"),
        (HEADER + function_record(ARCS, 8, 0, 2**31), GcdaDamaged, "a counter is negative"),
        (HEADER + function_record(ARCS + (4 << 17), 8, 0, 0), OtherKindOfCounters, "indirect_call"),
        (HEADER + function_record(ARCS, -8) + struct.pack("<2I", ARCS + (3 << 17), 8), OtherKindOfCounters, "topn"),
        (HEADER + function_record(FUNCTION, 12), GcdaDamaged, "a function has no counters"),
        (HEADER + function_record(), GcdaDamaged, "a function has no counters"),
        (HEADER + struct.pack("<2I", 0x12345678, 4), GcdaDamaged, "unknown record 0x12345678 of length 4 at byte 16"),
        (HEADER + struct.pack("<3I", 0, 0, 0), GcdaDamaged, "data follows its end at byte 20"),
    ],
)
def test_what_is_no_whole_file_of_counters_gets_one_clear_message(
    content: bytes, error: type[UserError], message: str
) -> None:
    with pytest.raises(error, match=message) as refused:
        read_gcda(content, "x.gcda")
    assert str(refused.value).startswith("x.gcda ") and refused.value.advice


def test_functions_of_other_objects_are_left_out_and_an_object_may_have_none() -> None:
    assert read_gcda(HEADER, "a").functions == ()
    elsewhere = struct.pack("<2I", FUNCTION, 0)
    assert [
        function.arcs for function in read_gcda(HEADER + elsewhere + function_record(ARCS, -16), "a").functions
    ] == [(0, 0)]


def test_a_file_that_is_cut_anywhere_but_after_its_header_is_refused(program: tuple[str, Path, bytes]) -> None:
    content = program[2]
    for length in {*range(len(content))} - {len(HEADER)}:
        with pytest.raises((GcdaDamaged, NotGcda)):
            read_gcda(content[:length], "cut.gcda")


def test_a_kernels_file_that_is_cut_is_refused_or_lacks_functions(program: tuple[str, Path, bytes]) -> None:
    kernels = as_kernel(program[2])
    whole = read_gcda(kernels, "whole.gcda")
    for length in range(len(kernels)):
        try:
            cut = read_gcda(kernels[:length], "cut.gcda")
        except (GcdaDamaged, NotGcda):
            continue
        with pytest.raises(OtherBuild, match="the functions differ"):
            require_same_build([whole, cut])


@settings(max_examples=400, derandomize=True, database=None)
@given(data=st.data())
def test_a_file_with_flipped_bits_is_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(encode_gcda(SMALL))
    for place in data.draw(st.lists(st.integers(0, len(content) * 8 - 1), min_size=1, max_size=4)):
        content[place // 8] ^= 1 << place % 8
    try:
        file = read_gcda(bytes(content), "flipped.gcda")
    except UserError as error:
        assert "flipped.gcda" in str(error) and "\n" not in str(error)
    else:
        if file.summary:
            assert read_gcda(encode_gcda(file), "again") == file


@given(
    arcs=st.lists(st.lists(st.integers(0, LARGEST), max_size=5).map(tuple), max_size=6),
    summary=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
)
def test_whatever_is_written_is_read_again(arcs: list[tuple[int, ...]], summary: tuple[int, int]) -> None:
    functions = tuple(GcovFunction(index, index + 1, index + 2, arc_counts) for index, arc_counts in enumerate(arcs))
    file = GcovFile("B53*", 5, functions, summary, 4)
    assert read_gcda(encode_gcda(file), "a") == file


def test_the_time_of_reading_is_in_proportion_to_the_file() -> None:
    def seconds(functions: int) -> float:
        content = HEADER + function_record(ARCS, 16, 1, 0, 2, 0) * functions
        taken = []
        for _ in range(5):
            start = time.thread_time()
            assert len(read_gcda(content, "a").functions) == functions
            taken.append(time.thread_time() - start)
        return min(taken)

    assert seconds(16_000) < 24 * max(seconds(2_000), 1e-3)
