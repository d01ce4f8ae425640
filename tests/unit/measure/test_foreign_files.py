"""Files as the user names them: which are variants, how these are called, and what is said of those not understood."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from kdyno.cli.main import main
from kdyno.judge.verdicts.of_files import judge_files
from kdyno.measure.readers import errors
from kdyno.measure.readers.formats.registry import READERS, recognise
from kdyno.measure.readers.markup import has_markup_table
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.sheet import last_place, shape_of
from kdyno.measure.readers.source import FileSource, read_all
from kdyno.measure.readers.tables import grids
from tests.unit.foreign_outputs import DATA, OUTPUTS

VALUES = "time_ms\n1.5\n1.25\n1.75\n"
MEANS = "test,mean,sd,n,unit\npipe,{},0.1,12,us\nfork,{},0.5,12,us\n"


def made(directory: Path, *names: str, text: str = VALUES) -> list[str]:
    paths = [directory / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [str(path) for path in paths]


def names(paths: list[str]) -> list[str]:
    return [source.name for source in read_all(paths)]


@pytest.mark.parametrize("form", [reader.name for reader in READERS])
def test_one_file_for_each_variant_is_judged_in_every_format(form: str, tmp_path: Path) -> None:
    if form in OUTPUTS:
        files = [str(DATA / name) for name in OUTPUTS[form][:2]]
    else:
        texts = (
            (MEANS.format(8.0, 70), MEANS.format(7.8, 69)) if form == "table" else (VALUES, VALUES.replace("5", "4"))
        )
        files = [*made(tmp_path, "x1", text=texts[0]), *made(tmp_path, "x2", text=texts[1])]
    report = judge_files([f"old={files[0]}", f"new={files[1]}"], JudgeRequest(n="5"))
    assert report.read_as.startswith(next(reader.title for reader in READERS if reader.name == form))
    assert (report.baseline, set(report.variants)) == ("old", {"old", "new"})
    compared = [comparison for comparison in report.comparisons if comparison.estimate is not None]
    assert compared
    assert {comparison.variant for comparison in compared} == {"new"}


@pytest.mark.parametrize("form", [reader.name for reader in READERS])
def test_the_error_for_a_single_variant_says_how_to_name_two_files(form: str, tmp_path: Path) -> None:
    file = str(DATA / OUTPUTS[form][0]) if form in OUTPUTS else ""
    if not file:
        [file] = made(tmp_path, "my data.csv", text=MEANS.format(8, 70) if form == "table" else VALUES)
    command = "hyperfine-before.json" if form == "hyperfine" else ""
    if command:  # whose commands are the variants of a lone file
        document = json.loads((DATA / command).read_text())
        [file] = made(tmp_path, "one.json", text=json.dumps({"results": document["results"][:1]}))
    with pytest.raises(errors.OneVariant) as caught:
        judge_files([file], JudgeRequest(n="5"))
    assert "name one file for each variant" in caught.value.advice
    assert caught.value.advice.endswith(f"kdyno judge {shlex.quote(f'before={file}')} after=FILE2")


def test_the_version_in_a_file_s_name_is_no_extension(tmp_path: Path) -> None:
    assert names(made(tmp_path, "6.12.1", "6.12.9", "host.1", "host.2")) == ["6.12.1", "6.12.9", "host.1", "host.2"]


def test_extensions_of_data_files_are_no_part_of_a_name(tmp_path: Path) -> None:
    files = made(tmp_path, "a.csv", "b.TSV", "c.v3.json", "d.out", "e.gz", "f.yaml", "6.12.1.txt", ".csv")
    assert names(files) == ["a", "b", "c.v3", "d", "e.gz", "f", "6.12.1", ".csv"]


def test_files_of_one_name_are_told_apart_by_their_directories(tmp_path: Path) -> None:
    files = made(tmp_path, "a/out.csv", "b/out.csv", "c.csv")
    assert names(files) == ["a/out", "b/out", "c"]
    deep = made(tmp_path, "x/new/raw.csv", "y/new/raw.csv", "y/base/raw.csv")
    assert names(deep) == ["x/new/raw", "y/new/raw", "y/base/raw"]


def test_files_of_one_name_and_directory_keep_their_extensions(tmp_path: Path) -> None:
    assert names(made(tmp_path, "a.csv", "a.txt", "b.csv")) == ["a.csv", "a.txt", "b"]


def test_a_file_is_not_taken_for_a_variant_that_another_was_named(tmp_path: Path) -> None:
    first, second = made(tmp_path, "x.csv", "old.csv")
    assert names([f"old={first}", second]) == ["old", f"{tmp_path.name}/old"]


def test_versions_of_kernels_are_judged_as_two_variants(tmp_path: Path) -> None:
    one, two = made(tmp_path, "6.12.1", "6.12.9")
    assert judge_files([one, two], JudgeRequest()).variants == ("6.12.1", "6.12.9")


def test_a_name_given_twice_is_one_variant_with_two_files() -> None:
    files = [f"{name}={DATA}/lmbench-{name}-{number}.txt" for name in ("before", "after") for number in (1, 2)]
    report = judge_files(files, JudgeRequest())
    assert report.variants == ("before", "after")
    assert any("each file counts once for its variant" in notice for notice in report.notices)


def test_a_file_that_is_named_twice_would_count_twice_and_is_refused(tmp_path: Path) -> None:
    [file] = made(tmp_path, "a.csv")
    link = tmp_path / "b.csv"
    link.symlink_to(file)
    for again in (file, str(link), os.path.relpath(file)):
        with pytest.raises(errors.FileReadTwice, match="its values would count twice"):
            judge_files([f"x={file}", f"y={again}"], JudgeRequest())


@pytest.mark.parametrize("reader", ["csv", "table"])
def test_two_columns_of_one_name_are_refused_with_their_numbers(reader: str, tmp_path: Path) -> None:
    text = "kernel,time,load,time\na,5,1,6\nb,6,1,7\n"
    if reader == "table":
        text = "| kernel | mean | sd | mean |\n|-|-|-|-|\n| a | 5 | 1 | 6 |\n"
    [file] = made(tmp_path, "a.csv", text=text)
    with pytest.raises(errors.ColumnTwice, match=r"line 1: columns 2 and 4 are both called '(time|mean)'"):
        judge_files([file], JudgeRequest())


def test_columns_without_a_name_are_called_by_their_numbers(tmp_path: Path) -> None:
    text = ",kernel,time_ms,,\n" + "".join(f"{n},{'ab'[n % 2]},{5 + n % 3},,\n" for n in range(12))
    [file] = made(tmp_path, "a.csv", text=text)
    assert shape_of(read_all([file])[0]).header == ("column 1", "kernel", "time_ms", "column 4", "column 5")
    assert judge_files([file], JudgeRequest()).variants == ("a", "b")


def test_one_dash_is_enough_below_a_column_s_name() -> None:
    assert has_markup_table("| a | b |\n|-|-|\n| 1 | 2 |\n")
    table = FileSource("a.md", "a", b"test|a|b\n:-|-:|:-:\npipe|5.0 (0.1)|6.0 (0.1)\n")
    assert grids(table)[0].header == ("test", "a", "b")
    assert not has_markup_table("a|b\n|||\n")


@pytest.mark.parametrize(
    ("printed", "step"),
    [("0.31", 0.01), ("3538.24", 0.01), ("1538", 1), ("-2.5", 0.1), ("1.5e-6", 1e-7), ("0.10000", 1e-5)],
)
def test_a_printed_number_says_what_it_was_rounded_to(printed: str, step: float) -> None:
    assert last_place(printed) == pytest.approx(step)


def test_a_number_with_all_the_digits_of_a_double_was_not_rounded() -> None:
    assert last_place("0.0023397519835294113") == 0


@pytest.mark.parametrize(
    ("text", "error", "example"),
    [
        (
            "kernel version nr,what is run,wall clock,cpu load\n"
            "old,pipe,1.5,3\nold,fork,2.5,4\nnew,pipe,1.25,3\nnew,x,2,3\n",
            errors.NoColumn,
            "kdyno judge FILE --variant 'kernel version nr' --benchmark 'what is run' --value 'wall clock,cpu load'",
        ),
        ("5.1,6.1\n5.2,6.2\n", errors.NoHeader, "sed -i '1i value1,value2' FILE "),
        ("kernel,box,time_ms\na,x,1.5\na,y,2.5\n", errors.OneVariant, "kdyno judge before=FILE after=FILE2"),
    ],
)
def test_a_file_that_is_not_understood_gets_a_command_with_its_own_names(
    text: str, error: type[errors.FileError], example: str, tmp_path: Path
) -> None:
    [file] = made(tmp_path, "my results.csv", text=text)
    with pytest.raises(error) as caught:
        judge_files([file], JudgeRequest())
    example = example.replace("before=FILE", shlex.quote(f"before={file}")).replace("FILE ", f"{shlex.quote(file)} ")
    assert caught.value.advice.endswith(f"for example: {example.strip()}")


def test_the_command_in_the_example_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{'ab'[n % 2]} kernel,{n % 3 + 4.5},{n % 2 + 3.25}\n" for n in range(12)]
    [file] = made(tmp_path, "my results.csv", text="which kernel,wall clock,cpu load\n" + "".join(lines))
    assert main(["judge", file]) == 1
    words = shlex.split(capsys.readouterr().err.rpartition("for example: ")[2])
    assert words[0] == "kdyno"
    assert main(words[1:]) == 0


@pytest.mark.parametrize(
    ("data", "advice"),
    [
        (b"SQLite format 3\0" + bytes(90), "sqlite3 -csv -header"),
        (b"\x1f\x8b\x08" + bytes(9), "gunzip"),
        (b"PERFILE2" + bytes(9), "perf stat -x,"),
    ],
)
def test_what_to_do_with_a_file_that_is_no_text_is_said(data: bytes, advice: str) -> None:
    with pytest.raises(errors.NotText, match=advice):
        recognise(FileSource("file", "file", data), JudgeRequest())


@pytest.mark.parametrize(
    ("files", "example"),
    [
        (("6.6-1.txt", "6.6-2.txt", "6.12-1.txt", "6.12-2.txt"), "6.6={}/6.6-1.txt 6.6={}/6.6-2.txt"),
        (("6.6/run1.txt", "6.6/run2.txt", "6.12/run1.txt", "6.12/run2.txt"), "6.6={}/6.6/run1.txt 6.6={}/6.6/run2.txt"),
        (("run_1.txt", "run_2.txt"), "NAME={}/run_1.txt NAME={}/run_2.txt"),
    ],
)
def test_files_that_are_numbered_like_runs_are_variants_with_a_note(
    tmp_path: Path, files: tuple[str, ...], example: str
) -> None:
    report = judge_files(made(tmp_path, *files), JudgeRequest())
    assert len(report.variants) == len(files)
    [note] = [notice for notice in report.notices if "look like runs of one" in notice]
    assert note.endswith(example.format(tmp_path, tmp_path))


@pytest.mark.parametrize(
    "files",
    [
        ("6.6.1.txt", "6.6.2.txt"),
        ("gcc-12.txt", "gcc-13.txt", "clang-18.txt", "clang-19.txt"),
        ("v-1.txt", "v-2.txt"),
        ("old.txt", "new.txt"),
    ],
)
def test_files_of_kernels_and_compilers_are_not_taken_for_runs(tmp_path: Path, files: tuple[str, ...]) -> None:
    report = judge_files(made(tmp_path, *files), JudgeRequest())
    assert not any("look like runs" in notice for notice in report.notices)
