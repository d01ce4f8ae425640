"""Tables as people paste them: no ratio, minimum, maximum, rank, counter or change becomes a variant or a value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kdyno.base.errors import UserError
from kdyno.judge.foreign.gathered import Gathered
from kdyno.judge.stats.observations import ReplicateSample, Summary
from kdyno.judge.verdicts.of_files import gather, judge_files
from kdyno.measure.readers import errors
from kdyno.measure.readers.cells import cell_of
from kdyno.measure.readers.formats.registry import recognise
from kdyno.measure.readers.headings import meaning
from kdyno.measure.readers.numerals import decimal_of
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.source import FileSource, read

DATA = Path(__file__).parents[2] / "data" / "foreign"
HYPERFINE = (
    "| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |\n|:---|---:|---:|---:|---:|\n"
    "| `generic` | 58.4 ± 0.3 | 57.9 | 59.8 | 1.03 ± 0.01 |\n| `tuned` | 56.9 ± 0.4 | 56.1 | 58.0 | 1.00 |\n"
)


def judged(*texts: str | bytes, name: str = "x.md", **options: object) -> Gathered:
    sources = [
        FileSource(f"{n}{name}", f"file{n}", text if isinstance(text, bytes) else text.encode())
        for n, text in enumerate(texts)
    ]
    request = JudgeRequest(**{"n": "10", **options})  # type: ignore[arg-type]
    return gather(sources, recognise(sources[0], request), request)


def figures(gathered: Gathered) -> dict[str, dict[str, object]]:
    """Benchmark -> variant -> (mean, sd) of a summary, the values of a sample."""
    return {
        observed.benchmark: {
            name: (group.mean, group.sd) if isinstance(group, Summary) else group.values.tolist()
            for name, group in observed.groups.items()
        }
        for observed in gathered.observations
    }


def test_the_markdown_of_hyperfine_is_means_of_commands() -> None:
    gathered = judged(HYPERFINE)
    assert figures(gathered) == {"Mean [ms]": {"generic": (58.4, 0.3), "tuned": (56.9, 0.4)}}
    [observed] = gathered.observations
    assert (observed.unit, observed.direction) == ("ms", "lower")
    assert "not read, since they are made from other numbers, or count: Min [ms], Max [ms], Relative" in gathered.notes


def test_of_several_files_of_hyperfine_each_is_a_variant_and_commands_are_benchmarks() -> None:
    gathered = judged(HYPERFINE, HYPERFINE.replace("58.4", "57.4"))
    assert figures(gathered) == {
        "generic": {"file0": (58.4, 0.3), "file1": (57.4, 0.3)},
        "tuned": {"file0": (56.9, 0.4), "file1": (56.9, 0.4)},
    }


@pytest.mark.parametrize("unit", ["s", "ms", "µs"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_units_of_hyperfine_line_ends_and_a_byte_order_mark_change_nothing(unit: str, end: str, mark: bytes) -> None:
    text = HYPERFINE.replace("[ms]", f"[{unit}]").replace("\n", end)
    gathered = judged(mark + text.encode())
    assert gathered.variants == ("generic", "tuned")
    assert gathered.observations[0].unit == unit.replace("µ", "u")


@pytest.mark.parametrize(
    ("head", "cells"),
    [
        ("Relative", ("1.03", "1.00")),
        ("Relative", ("1.03 ± 0.01", "1.00")),
        ("Speedup", ("1.00x", "1.03x")),
        ("speed-up", ("1.00", "1.03")),
        ("vs. baseline", ("0.0 %", "-2.6 %")),
        ("vs generic", ("1.00", "0.97")),
        ("x", ("1.00", "1.03")),
        ("×", ("1.00", "1.03")),
        ("%", ("0", "-2.6")),
        ("% change", ("0", "2.6")),
        ("change [%]", ("0", "2.6")),
        ("Δ", ("0", "1.5")),
        ("Δ%", ("0.0", "2.6")),
        ("ratio to generic", ("1.00", "0.97")),
        ("Improvement", ("+0.0%", "+2.6%")),
        ("gain", ("0", "2.6")),
        ("normalized", ("1.00", "0.97")),
        ("min", ("57.9", "56.1")),
        ("Max [ms]", ("59.8", "58.0")),
        ("best", ("57.9", "56.1")),
        ("worst of 10", ("59.8", "58.0")),
        ("p99", ("60.1", "59.2")),
        ("p99 (ms)", ("60.1", "59.2")),
        ("95th percentile", ("60.1", "59.2")),
        ("rank", ("2", "1")),
        ("#", ("1", "2")),
        ("run", ("1", "2")),
        ("iteration", ("1", "2")),
        ("runs", ("10", "10")),
        ("n", ("10", "10")),
        ("stddev", ("0.3", "0.4")),
        ("σ", ("0.3", "0.4")),
        ("95% CI", ("0.2", "0.3")),
        ("p-value", ("0.5", "0.01")),
        ("my own words", ("+0.0 %", "−2.6 %")),
        ("my own words", ("1.00×", "1.03×")),
    ],
)
@pytest.mark.parametrize("place", ["before", "after"])
def test_a_column_made_of_others_is_neither_a_variant_nor_a_measurement(
    head: str, cells: tuple[str, str], place: str
) -> None:
    rows = [("kernel", "time", head), ("generic", "58.4", cells[0]), ("tuned", "56.9", cells[1])]
    if place == "before":
        rows = [(name, made, time) for name, time, made in rows]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    gathered = judged("\n".join([lines[0], "|--|--|--|", *lines[1:]]) + "\n")
    assert gathered.variants == ("generic", "tuned")
    assert list(figures(gathered)) == ["time"]


@pytest.mark.parametrize(
    "head", ["Relative", "Speedup", "vs 6.12", "x", "Δ %", "6.13 vs 6.12", "min", "max", "p99", "stddev", "rank", "n"]
)
def test_a_column_made_of_others_is_no_variant_beside_variants(head: str) -> None:
    text = f"| test | 6.12 | 6.13 | {head} |\n|-|-|-|-|\n| pipe | 5.1 | 5.2 | 1.02 |\n| fork | 99 | 98 | 0.99 |\n"
    gathered = judged(text)
    assert figures(gathered) == {"pipe": {"6.12": [5.1], "6.13": [5.2]}, "fork": {"6.12": [99.0], "6.13": [98.0]}}


@pytest.mark.parametrize("head", ["Speedup", "vs. baseline", "min", "max_ms", "rank", "p99_us", "ratio", "gain (%)"])
@pytest.mark.parametrize("form", ["csv", "md"])
def test_a_table_of_nothing_but_such_columns_is_refused(head: str, form: str) -> None:
    rows = [["kernel", head], ["generic", "1.00"], ["tuned", "1.03"]]
    text = "\n".join(",".join(row) for row in rows) + "\n"
    if form == "md":
        text = "\n".join(["|".join(row) for row in [rows[0], ["-", "-"], *rows[1:]]]) + "\n"
    with pytest.raises(UserError) as caught:
        judged(text, name=f"x.{form}")
    assert "--value" in caught.value.advice


def test_rows_that_sum_up_others_are_no_benchmarks() -> None:
    text = "| test | a | b |\n|-|-|-|\n| pipe | 5.1 | 5.2 |\n| fork | 7 | 8 |\n| geomean | 6 | 6.4 |\n| max | 7 | 8 |\n"
    gathered = judged(text)
    assert list(figures(gathered)) == ["pipe", "fork"]
    assert "rows that weren't read, since they sum up others: geomean, max" in gathered.notes


def test_changes_in_brackets_are_no_deviations() -> None:
    gathered = judged("| test | a | b |\n|-|-|-|\n| pipe | 5.1 | 5.2 (+2.0%) |\n| fork | 7 | 8 (1.14x) |\n")
    assert figures(gathered) == {"pipe": {"a": [5.1], "b": [5.2]}, "fork": {"a": [7.0], "b": [8.0]}}
    assert "texts in brackets weren't read: (+2.0%), (1.14x)" in gathered.notes


def test_a_table_of_means_is_read_and_undecided_since_nobody_knows_their_spread() -> None:
    report = judge_files([str(DATA / "means.md")], JudgeRequest())
    assert report.variants == ("gcc-14", "clang-21", "clang-21 ThinLTO")
    assert {comparison.verdict for comparison in report.comparisons} == {"undecided"}
    assert {comparison.reason for comparison in report.comparisons} == {"one value: no spread known"}
    assert [benchmark.unit for benchmark in report.benchmarks] == ["s", "ms"]


def test_kernels_as_columns_of_a_csv_are_variants_where_the_rows_are_tests() -> None:
    report = judge_files([str(DATA / "wide-tests.csv")], JudgeRequest())
    assert report.variants == ("6.12.1", "6.13.0")
    assert [benchmark.name for benchmark in report.benchmarks] == ["pipe", "fork", "stat"]


def test_kernels_beside_a_counter_are_asked_for_and_wide_says_it() -> None:
    file = str(DATA / "wide-runs.csv")
    with pytest.raises(errors.MaybeWide, match=r"line 1: are 6\.12\.1, 6\.13\.0 variants, one a column\?") as caught:
        judge_files([file], JudgeRequest())
    assert "variants: --wide" in caught.value.advice
    report = judge_files([file], JudgeRequest(wide=True, unit="s"))
    assert report.variants == ("6.12.1", "6.13.0")
    assert [comparison.verdict for comparison in report.comparisons] == ["slower"]


def test_benchmarks_as_columns_are_never_compared_with_each_other() -> None:
    for text in ("| project | real1 | user1 | sys1 |\n|-|-|-|-|\n| p0 | 10 | 8 | 1 |\n| p1 | 13 | 9 | 1.2 |\n",):
        with pytest.raises(errors.MaybeRows, match="rows of 'project' variants, or benchmarks"):
            judged(text)
        gathered = judged(text, text, columns={"benchmark": "project"})
        assert gathered.variants == ("file0", "file1")


def test_the_hint_for_files_named_as_variants_compares_within_rows(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("project,real1,user1\np0,10.1,8.1\np1,13.1,9.9\n")
    with pytest.raises(errors.NoColumn) as caught:
        judge_files([f"k33={tmp_path}/a", f"k34={tmp_path}/b"], JudgeRequest())
    assert caught.value.advice.endswith("--block project --value real1,user1")


@pytest.mark.parametrize(
    "text",
    [
        "test,6.12.1,6.13.0\npipe,5.1,5.2\n",
        "run,6.12.1,6.13.0\n1,5.1,5.2\n2,5.2,5.3\n",
        "Distribution,kernel,a,b\nClear,6.1,319,N/A\nXan,6.7,327,324\n",
        "project,real1,user1\np0,10.1,8.1\np1,13.1,9.9\n",
        "workload,foo,bar\nx,10.1,8.1\ny,13.1,9.9\n",
    ],
)
def test_no_hint_compares_benchmarks_with_each_other_or_takes_a_counter_for_a_value(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text(text)
    try:
        judge_files([str(file)], JudgeRequest())
    except errors.MaybeRows as error:  # which asks
        assert "if they are variants: --variant" in error.advice
    except UserError as error:
        for wrong in ("--variant test", "--variant project", "--variant workload", "--value run", "--benchmark b"):
            assert wrong not in error.advice


@pytest.mark.parametrize(
    ("text", "mark", "mean", "sd", "unit"),
    [
        ("5.84s ± 0.03s", ".", "5.84", "0.03", "s"),
        ("5.84 s +- 0.03", ".", "5.84", "0.03", "s"),
        ("58.4 ± 0.3 ms", ".", "58.4", "0.3", "ms"),
        ("5.84 s ± 30 ms", ".", "5.84", "0.03", "s"),
        ("5,84 (0,03)", ",", "5.84", "0.03", ""),
        ("1.079,5 ± 0,1", ",", "1079.5", "0.1", ""),
        ("1\u202f079,5\u00a0ms", ",", "1079.5", "", "ms"),
        ("1'079.5", ".", "1079.5", "", ""),
        ("8,217,541 +/- 12", ".", "8217541", "12", ""),
        ("25.01k", ".", "25.01e3", "", ""),
        ("1m23.4s", ".", "83.4", "", "s"),
        ("1,200 req/s", ".", "1200", "", "req/s"),
        ("**79.4** (sd 0.1)", ".", "", "", ""),
    ],
)
def test_cells_are_read_as_they_are_written_everywhere(text: str, mark: str, mean: str, sd: str, unit: str) -> None:
    cell = cell_of(text, mark)
    assert ((cell.mean, cell.sd, cell.unit) if cell else ("", "", "")) == (mean, sd, unit)


@pytest.mark.parametrize("text", ["6.12.1", "6.12.1-rc3", "01.02.2025", "10.0.0.1", "2025-03-01", "1:02", "abc", "7"])
def test_versions_and_dates_say_nothing_of_decimal_marks(text: str) -> None:
    assert decimal_of([text, "1,5"]) == decimal_of(["1,5"])
    assert decimal_of([text, "1.5"]) == decimal_of(["1.5"])


def test_decimal_commas_in_markdown_are_read_where_they_are_certain() -> None:
    gathered = judged("| test | 6.12 | 6.13 |\n|-|-|-|\n| x | 5,84 (0,03) | 5,70 (0,02) |\n")
    assert figures(gathered) == {"x": {"6.12": (5.84, 0.03), "6.13": (5.7, 0.02)}}


def test_a_comma_that_tells_nothing_is_said_and_can_be_decided() -> None:
    text = "| test | 6.12 | 6.13 |\n|-|-|-|\n| x | 1,234 | 1,250 |\n"
    gathered = judged(text)
    assert figures(gathered) == {"x": {"6.12": [1234.0], "6.13": [1250.0]}}
    assert "1,234 was read as 1234; --decimal , reads it the other way" in gathered.notes
    assert figures(judged(text, decimal=",")) == {"x": {"6.12": [1.234], "6.13": [1.25]}}


def test_two_decimal_marks_are_refused_with_the_way_out() -> None:
    with pytest.raises(errors.TwoMarks) as caught:
        judged("| test | 6.12 | 6.13 |\n|-|-|-|\n| x | 5,84 | 5.90 |\n")
    assert "--decimal" in caught.value.advice


@pytest.mark.parametrize(
    "table",
    [
        "| kernel | time |\n|--------+------|\n| a | 5.8 s |\n| b | 5.9 s |\n",
        "+--------+------+\n| kernel | time |\n+--------+------+\n| a | 5.8 s |\n| b | 5.9 s |\n+--------+------+\n",
        " kernel | time\n--------+------\n a | 5.8 s\n b | 5.9 s\n(2 rows)\n",
        "kernel\ttime\na\t5.8 s\nb\t5.9 s\n",
        "kernel;time\na;5,8 s\nb;5,9 s\n",
        "kernel,time\na,5.8 s\nb,5.9 s\n",
        "kernel,time\na,5800 ms\nb,5900 ms\n",
    ],
)
def test_org_databases_tabs_and_semicolons_are_read_alike(table: str) -> None:
    [observed] = judged(table).observations
    assert (observed.benchmark, observed.direction) == ("time", "lower")
    scale = 1000 if observed.unit == "ms" else 1
    values = [group.values.tolist() for group in observed.groups.values() if isinstance(group, ReplicateSample)]
    assert values == [[5.8 * scale], [5.9 * scale]]


def test_a_pipe_in_a_command_is_no_border() -> None:
    gathered = judged(HYPERFINE.replace("`generic`", "`ls \\| wc`"))
    assert gathered.variants == ("ls | wc", "tuned")


def test_several_measurements_of_kernels_in_rows_are_several_benchmarks() -> None:
    text = "| kernel | latency (us) | throughput (MB/s) |\n|-|-|-|\n| a | 5.1 | 900 |\n| b | 5.2 | 950 |\n"
    gathered = judged(text)
    assert {observed.benchmark: observed.direction for observed in gathered.observations} == {
        "latency (us)": "lower",
        "throughput (MB/s)": "higher",
    }


@pytest.mark.parametrize("heads", ["generic [ms] | tuned [ms]", "generic_ms | tuned_ms", "generic ms | tuned ms"])
def test_units_in_the_heads_of_variants_are_units(heads: str) -> None:
    gathered = judged(f"| test | {heads} |\n|-|-|-|\n| x | 5.1 | 5.2 |\n")
    assert gathered.variants == ("generic", "tuned")
    assert gathered.observations[0].unit == "ms"


def test_single_values_in_columns_are_a_sample() -> None:
    lines = "".join(f"| {n} | {5.1 + n / 100:.2f} | {5.2 + n / 100:.2f} |\n" for n in range(1, 7))
    gathered = judged(f"| run | 6.12 | 6.13 |\n|-|-|-|\n{lines}", wide=True)
    [group] = [observed.groups["6.12"] for observed in gathered.observations]
    assert isinstance(group, ReplicateSample)
    assert np.allclose(group.values, [5.11, 5.12, 5.13, 5.14, 5.15, 5.16])


@pytest.mark.parametrize("spelling", ["", "NA", "N/A", "n/a", "NaN", "nan", "-", "–", "NULL", " NA "])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_cells_without_a_measurement_are_left_out_and_counted(spelling: str, delimiter: str) -> None:
    rows = [("kernel", "test", "time"), ("A", "x", "1.5"), ("A", "x", "1.6"), ("B", "x", "1.7"), ("B", "x", spelling)]
    gathered = judged("".join(f"{delimiter.join(row)}\n" for row in rows), name="x.csv")
    assert figures(gathered) == {"x": {"A": [1.5, 1.6], "B": [1.7]}}
    assert "cells without a measurement (empty, NA, NaN or -) were left out: 1 of B" in gathered.notes


@pytest.mark.parametrize("word", ["slow", "fail", "timeout", "inf", "0", "-1"])
def test_words_and_what_is_not_positive_stay_an_error(word: str) -> None:
    with pytest.raises(errors.BadValue, match=f"line 3, column 'time': '{word}'"):
        judged(f"kernel,time\nA,1.5\nB,{word}\nC,2.5\n", name="x.csv")
    with pytest.raises(errors.BadValue, match=f"line 4, column 'time': '{word}'"):
        judged(f"| kernel | time |\n|-|-|\n| A | 1.5 |\n| B | {word} |\n| C | 2.5 |\n")


def test_a_column_in_which_nothing_was_measured_is_refused() -> None:
    with pytest.raises(errors.AllMissing, match="column 'time': nothing was measured"):
        judged("kernel,time\nA,NA\nB,-\n", name="x.csv", values=("time",))


def test_a_row_that_is_too_short_is_not_taken_for_one_without_a_value() -> None:
    with pytest.raises(errors.RaggedRow, match="line 3"):
        judged("kernel,time\nA,1.5\nB\nC,2\n", name="x.csv")


def test_thousands_in_csv_are_read() -> None:
    gathered = judged('kernel,time\nA,"1,079.5"\nB,"1,082.25"\n', name="x.csv")
    assert figures(gathered) == {"time": {"A": [1079.5], "B": [1082.25]}}
    gathered = judged("kernel;time\nA;1.079,5\nB;1.082,25\n", name="x.csv")
    assert figures(gathered) == {"time": {"A": [1079.5], "B": [1082.25]}}


@pytest.mark.parametrize("name", ["6.12.1", "generic", "max-perf", "x86-64-v3", "CPU family", "mq-deadline", "none"])
def test_names_of_kernels_are_no_statistics(name: str) -> None:
    assert meaning(name) == ""


def test_a_table_that_can_t_be_read_beside_one_that_can_is_said() -> None:
    text = "| a | b | c |\n|-|-|-|\n| h | 16 | 64 |\n| i | 18 | 65 |\n\n" + HYPERFINE
    gathered = judged(text)
    assert gathered.variants == ("generic", "tuned")
    assert "the table in line 1 wasn't read: its columns have no known meaning" in gathered.notes


def test_files_of_the_tests_are_as_their_tests_say() -> None:
    assert recognise(read(str(DATA / "hyperfine.md")), JudgeRequest()).name == "table"


@pytest.mark.parametrize("delimiter", ["\t", ";"])
def test_a_dot_before_three_digits_is_a_decimal_point_and_that_is_said(delimiter: str) -> None:
    text = "run,base,patched\n1,10.119,10.489\n2,10.121,10.502\n".replace(",", delimiter)
    gathered = judged(text, wide=True, name="x.csv")
    assert figures(gathered) == {"value": {"base": [10.119, 10.121], "patched": [10.489, 10.502]}}
    assert "10.119 was read as 10.119; --decimal , reads it the other way" in gathered.notes
    other = judged(text, wide=True, name="x.csv", decimal=",")
    assert figures(other) == {"value": {"base": [10119, 10121], "patched": [10489, 10502]}}


def test_dots_that_may_be_between_thousands_are_said_where_whole_numbers_are_beside_them() -> None:
    rows = "".join(f"{kernel};{value}\n" for kernel in "ab" for value in ("998", "1.002", "1.005"))
    note = "1.002 was read as 1.002; --decimal , reads it the other way"
    gathered = judged(f"kernel;throughput\n{rows}", name="x.csv")
    assert note in gathered.notes
    assert note not in judged(f"kernel;throughput\n{rows}".replace("998", "0.998"), name="x.csv").notes
    assert figures(judged(f"kernel;throughput\n{rows}", name="x.csv", decimal=",")) == {
        "throughput": {"a": [998, 1002, 1005], "b": [998, 1002, 1005]}
    }


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("patched/base", ("1.020", "1.039")),
        ("base / patched", ("0.98", "0.96")),
        ("patched/base", ("1.0196", "1.0392156862745099")),
        ("patched:base", ("102.0", "103.9")),
        ("patched-base", ("0.2", "0.2")),
        ("base−patched", ("-0.2", "-0.2")),
    ],
)
def test_a_column_made_of_two_others_that_it_names_is_no_variant(name: str, cells: tuple[str, str]) -> None:
    text = f"| test | base | patched | {name} |\n|-|-|-|-|\n| x | 10.2 | 10.4 | {{}} |\n| y | 5.1 | 5.3 | {{}} |\n"
    gathered = judged(text.format(*cells))
    assert gathered.variants == ("base", "patched")
    assert f"not read, since they are made from other numbers, or count: {name}" in gathered.notes


def test_a_kernel_with_the_names_of_two_others_is_a_variant_by_its_numbers() -> None:
    text = "| test | O3 | lto | O3-lto |\n|-|-|-|-|\n| x | 10.2 | 10.4 | 10.1 |\n| y | 5.1 | 5.3 | 5.0 |\n"
    assert judged(text).variants == ("O3", "lto", "O3-lto")
