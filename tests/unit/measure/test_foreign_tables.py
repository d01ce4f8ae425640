"""CSV and summary tables: what columns are taken for, and what is wrong with bad ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kdyno.base.errors import UserError
from kdyno.judge.foreign.gathered import Gathered
from kdyno.judge.stats.observations import ReplicateSample, Summary
from kdyno.judge.verdicts.model import FileReport
from kdyno.judge.verdicts.of_files import gather, judge_files
from kdyno.measure.readers import delimited, errors, units
from kdyno.measure.readers.cells import cell_of
from kdyno.measure.readers.formats.registry import BY_NAME, recognise
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.sheet import shape_of
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.tables import grids


def source(text: str | bytes, name: str = "file") -> FileSource:
    return FileSource(shown=f"{name}.csv", name=name, data=text if isinstance(text, bytes) else text.encode())


def judged(directory: Path, text: str, *, wide: bool = False) -> FileReport:
    (directory / "a.csv").write_text(text)
    return judge_files([str(directory / "a.csv")], JudgeRequest(wide=wide))


def rows(*texts: str | bytes, **options: object) -> Gathered:
    sources = [source(text, f"file{number}") for number, text in enumerate(texts)]
    return gather(sources, BY_NAME["csv"], JudgeRequest(**options))  # type: ignore[arg-type]


def sample(gathered: Gathered, variant: str, benchmark: int = 0) -> ReplicateSample:
    group = gathered.observations[benchmark].groups[variant]
    assert isinstance(group, ReplicateSample)
    return group


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    text = "kernel,time_ms,pair\na,1.5,1\nb,1.25,1\n".replace(",", delimiter)
    gathered = rows(text)
    assert gathered.columns == {"value": "time_ms", "variant": "kernel", "block": "pair"}
    assert gathered.observations[0].unit == "ms"
    assert sample(gathered, "b").values.tolist() == [1.25]


def test_decimal_commas_are_read_where_the_comma_is_not_the_delimiter() -> None:
    assert sample(rows("variant;value\na;1,5\nb;2,5\n"), "b").values.tolist() == [2.5]


def test_lines_of_comment_a_byte_order_mark_and_windows_line_ends_do_no_harm() -> None:
    gathered = rows("\ufeff# made by hand\r\nvariant,value\r\na,1.5\r\nb,2.5\r\n")
    assert sample(gathered, "a").values.tolist() == [1.5]


def test_names_in_quotes_may_hold_the_delimiter() -> None:
    assert rows('variant,value\n"gcc, O3",1\nb,2\n').variants == ("gcc, O3", "b")


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("Kernel,Test,Elapsed (s)", {"variant": "Kernel", "benchmark": "Test", "value": "Elapsed (s)"}),
        ("config,metric,result", {"variant": "config", "benchmark": "metric", "value": "result"}),
        ("name,workload,cost", {"variant": "name", "benchmark": "workload", "value": "cost"}),
        ("kernel,name,wall_time_ms", {"variant": "kernel", "benchmark": "name", "value": "wall_time_ms"}),
    ],
)
def test_columns_are_guessed_from_their_names(header: str, columns: dict[str, str]) -> None:
    assert rows(f"{header}\na,t,1\nb,t,2\n").columns == columns


def test_columns_that_are_named_win_over_guesses_and_what_is_left_is_said() -> None:
    gathered = rows("kernel,cc,value\n6.1,gcc,1\n6.1,clang,2\n", columns={"variant": "CC"})
    assert gathered.variants == ("gcc", "clang")
    assert gathered.columns == {"value": "value", "variant": "cc"}
    assert "columns that weren't used: kernel" in gathered.notes


def test_versions_are_names_and_not_numbers() -> None:
    gathered = rows("kernel,time_s\n6.1,1\n6.10,2\n6.1,3\n")
    assert gathered.variants == ("6.1", "6.10")
    assert sample(gathered, "6.1").values.tolist() == [1, 3]


def test_several_value_columns_are_several_benchmarks() -> None:
    gathered = rows("variant,read_ns,write_us\na,1,2\nb,3,4\n", values=("read_ns", "write_us"))
    assert [(observation.benchmark, observation.unit) for observation in gathered.observations] == [
        ("read_ns", "ns"),
        ("write_us", "us"),
    ]


def test_a_time_of_day_is_not_taken_for_the_value() -> None:
    gathered = rows("variant,time,value\na,2025-03-01 10:00,5\nb,2025-03-01 11:00,6\n")
    assert gathered.columns == {"value": "value", "variant": "variant", "day": "time"}
    assert sample(gathered, "b").order is not None


def test_a_file_without_a_variant_is_one_variant() -> None:
    assert rows("time\n1.5\n1.6\n", "time\n1.7\n1.8\n").variants == ("file0", "file1")


def test_a_boot_counts_once_however_often_it_was_read() -> None:
    text = "variant,boot,iteration,value\n" + "".join(
        f"{variant},{boot},{iteration},{10 * boot + iteration}\n"
        for variant in "ab"
        for boot in (1, 2)
        for iteration in (1, 2, 9)
    )
    gathered = rows(text)
    assert sample(gathered, "a").values.tolist() == [12, 22]
    assert sample(gathered, "a").blocks is None
    assert gathered.notes[0] == "each boot counts once, with the median of its values (12 rows, 4 medians)"


def test_a_block_counts_once_for_each_variant() -> None:
    text = "variant,block,iteration,value\na,7,1,1\na,7,2,3\na,7,3,2\nb,7,1,5\nb,9,1,6\n"
    gathered = rows(text, unit="s")
    first, second = sample(gathered, "a"), sample(gathered, "b")
    assert first.values.tolist() == [2]
    assert first.blocks is not None
    assert second.blocks is not None
    assert (first.blocks.tolist(), second.blocks.tolist()) == ([7], [7, 9])


def test_blocks_of_two_runs_are_not_mixed_up() -> None:
    text = "run,variant,block,iteration,value\nr1,a,0,0,1\nr2,a,0,0,3\nr1,b,0,0,1\nr2,b,0,0,3\n"
    assert sample(rows(text, unit="s"), "a").values.tolist() == [1, 3]


def test_a_layout_is_a_cluster() -> None:
    gathered = rows("variant,layout,value\na,0,1\na,1,2\nb,0,3\nb,1,4\n")
    clusters = sample(gathered, "b").clusters
    assert clusters is not None
    assert clusters.tolist() == [0, 1]


def test_one_layout_of_a_variant_is_not_a_sample_of_layouts() -> None:
    gathered = rows("variant,build_id,value\na,x,1\na,x,2\nb,y,3\nb,z,4\n")
    assert gathered.columns["layout"] == "build_id"
    assert sample(gathered, "b").clusters is None
    assert sample(gathered, "a").values.tolist() == [1, 2]


def test_units_of_a_benchmark_are_converted_to_its_first() -> None:
    gathered = rows("variant,test,value,unit\na,x,1.5,us\na,y,7,MB/s\nb,x,1400,ns\nb,y,7000,KB/s\nb,x,2,us\n")
    assert [observation.unit for observation in gathered.observations] == ["us", "MB/s"]
    assert sample(gathered, "b").values.tolist() == pytest.approx([1.4, 2])
    assert sample(gathered, "b", 1).values.tolist() == pytest.approx([7])


def test_units_that_do_not_fit_are_named() -> None:
    with pytest.raises(errors.MixedUnits, match=r"'x' has values in 'us' and in 'MB/s'"):
        rows("variant,test,value,unit\na,x,1.5,us\nb,x,1400,MB/s\n")


def test_the_direction_is_told_by_a_column_the_flag_or_the_unit() -> None:
    text = "variant,value,unit,direction\na,1,frobs,higher is better\nb,2,frobs,higher is better\n"
    assert rows(text).observations[0].direction == "higher"
    assert rows(text, direction="lower").observations[0].direction == "lower"
    assert rows("variant,value,unit\na,1,GB/s\nb,2,GB/s\n").observations[0].direction == "higher"
    unknown = rows("variant,cost\na,1\nb,2\n")
    assert unknown.observations[0].direction is None
    assert unknown.notes == (
        "nothing says whether lower or higher is better for cost: it is called higher and lower, not faster and "
        "slower; give it with --higher or --lower",
    )


@pytest.mark.parametrize(
    ("header", "row", "way"),
    [
        ("kernel,test,ops_per_sec", "pipe,1", "higher"),
        ("kernel,test,events_per_second", "pipe,1", "higher"),
        ("kernel,test,requests_per_second", "pipe,1", "higher"),
        ("kernel,test,value,unit", "pipe,1,requests/sec", "higher"),
        ("kernel,test,value,unit", "pipe,1,tps", "higher"),
        ("kernel,test,value,unit", "pipe,1,bogo ops/s", "higher"),
        ("kernel,test,latency", "pipe,1", "lower"),
        ("kernel,test,throughput", "pipe,1", "higher"),
        ("kernel,test,throughput", "pipe latency,1", None),
        ("kernel,test,score", "pipe,1", None),
        ("kernel,test,value,unit", "faults,1,faults/s", None),
        ("kernel,test,ops_s", "pipe,1", None),
    ],
)
def test_the_direction_is_known_where_it_is_certain_and_nowhere_else(header: str, row: str, way: str | None) -> None:
    gathered = rows(f"{header}\na,{row}\nb,{row}\n")
    assert gathered.observations[0].direction == way
    assert ("--higher or --lower" in "".join(gathered.notes)) == (way is None)


def test_bits_and_bytes_are_not_mixed_up() -> None:
    table = rows("variant,test,value,unit\na,net,8,Gb/s\na,net,8.4,Gb/s\nb,net,1,GB/s\nb,net,1.05,GB/s\n")
    assert table.observations[0].unit == "Gb/s"
    assert sample(table, "b").values.tolist() == pytest.approx(sample(table, "a").values.tolist())


@pytest.mark.parametrize("value", ["0", "-3", "inf", "-inf", "abc", "slow", "1_0", "3 (0.1)"])
def test_a_value_that_is_not_a_positive_number_is_named_with_its_line_and_column(value: str) -> None:
    with pytest.raises(errors.BadValue) as caught:
        rows(f"variant,time_s\na,1\na,2\nb,{value}\nb,2\n")
    assert str(caught.value) == f"file0.csv, line 4, column 'time_s': {value!r} is not a positive number"


@pytest.mark.parametrize("value", ["1e60", "1e61", "1e999", "1e-60", "1e-61", "1e-400"])
def test_a_number_beyond_the_limits_is_said_to_be_beyond_them_wherever_it_stands(value: str) -> None:
    says = r"line \d, column '(time_s|mean|sd|slow)': '.*' is outside the range that can be judged, 1e-60 to 1e60"
    with pytest.raises(errors.BeyondLimits, match=says):
        rows(f"variant,time_s\na,1\na,2\nb,{value}\nb,2\n")
    tables = (
        f"kernel,mean,sd,n\na,{value},1,5\nb,2,1,5\n",
        f"kernel,mean,sd,n\na,1.5,{value},5\nb,2,1,5\n",
        f"kernel,mean,sd,n\na,1.5,{value},5\nb,2,{value},5\n",
        f"|test|slow|fast|\n|-|-|-|\n|x|{value} ± 0.1|2 ± 0.1|\n",
        f"|test|slow|fast|\n|-|-|-|\n|x|3 ± {value}|2 ± 0.1|\n",
        f"|test|slow|fast|\n|-|-|-|\n|x|3 ({value})|2 (0.1)|\n",
    )
    for table in tables:
        with pytest.raises(errors.BeyondLimits, match=says):
            gather([source(table)], BY_NAME["table"], JudgeRequest(n="5", wide="|" in table))


def test_a_file_whose_only_values_were_left_out_is_refused_with_the_reason() -> None:
    files = [source("1e61\n2\n", "a"), source("3\n2\n", "b")]
    with pytest.raises(
        errors.NothingThere, match=r"value is 1e\+61, outside the range that can be judged \(1e-60 to 1e60\)"
    ) as caught:
        gather(files, BY_NAME["numbers"], JudgeRequest())
    assert str(caught.value).startswith("a.csv: no measurement found")


def test_a_deviation_of_nothing_is_a_deviation() -> None:
    table = gather([source("kernel,mean,sd,n\na,1.5,0,5\nb,2,0.0,5\n")], BY_NAME["table"], JudgeRequest())
    assert [group.sd for group in table.observations[0].groups.values() if isinstance(group, Summary)] == [0, 0]


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("", errors.EmptyFile, "file0.csv is empty"),
        (" \n\n", errors.EmptyFile, "file0.csv is empty"),
        ("\ufeff\n", errors.EmptyFile, "file0.csv is empty"),
        ("variant,value\n", errors.NoRows, "a header and no rows"),
        ("1,2\n3,4\n", errors.NoHeader, "the first line holds numbers"),
        ("variant,value\na,1\na,2,3\nb,2\n", errors.RaggedRow, "line 3: fields: 3, in the header: 2"),
        ("variant,value\na,1\na\nb,2\n", errors.RaggedRow, "line 3: fields: 1, in the header: 2"),
        ("variant,value\na,1\n,2\n", errors.EmptyCell, "line 3, column 'variant'"),
        ('variant,value\n"a,1\nb,2\n', UserError, "file0.csv"),
        ('variant,value,why\na,1,x\nb,2,"x\n', errors.Broken, "a quote is never closed: the one that opens in line 3"),
        ("variant,value\n" + "x" * 5000 + ",1\n", errors.HugeField, "a field of 5000 characters"),
        ("variant,value\n" + "x" * 200_000 + ",1\n", errors.HugeField, "a field of more than 131072"),
        ("foo,bar,baz\na,1,2\nb,2,3\n", errors.MaybeWide, "line 1: are bar, baz variants, one a column?"),
        ("variant,block,value\na,1,5\na,1,6\nb,1,5\n", errors.BlockTwiceInFile, "2 rows for block '1'"),
        ("variant,value\n" + "".join(f"v{n},1\n" for n in range(60)), errors.ManyVariants, "60 different values"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_in_one_message(text: str, error: type[UserError], says: str) -> None:
    with pytest.raises(error) as caught:
        rows(text)
    assert says in str(caught.value)
    assert caught.value.advice


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (b"\x7fELF\0\0\1", errors.NotText, "zero bytes"),
        ("variant,value\n".encode("utf-16-le"), errors.NotText, "zero bytes"),
        ("variant,value\n\xe9,1\n".encode("latin1"), errors.WrongEncoding, "line 2: byte 0xe9 is not UTF-8"),
    ],
)
def test_a_file_that_is_not_text_in_utf_8_is_refused(data: bytes, error: type[UserError], says: str) -> None:
    with pytest.raises(error, match=says):
        rows(data)


def test_what_a_file_says_can_t_steer_the_terminal_through_an_error() -> None:
    with pytest.raises(errors.MaybeWide, match="are bar, baz variants") as caught:
        rows("foo\x1b[31m,bar\x9b2J,baz\na,1,2\nb,2,3\n")
    assert "--value 'bar,baz'" in caught.value.advice
    with pytest.raises(errors.BadValue, match=r"'2\\x07' is not"):
        rows("variant,value\na,1\nb,2\x07\n")


def test_a_column_that_is_not_there_is_hinted_at() -> None:
    with pytest.raises(errors.NoSuchColumn) as caught:
        rows("variant,value\na,1\nb,2\n", columns={"variant": "varient"})
    assert caught.value.advice == "did you mean 'variant'? its columns: variant, value"


def test_millions_of_rows_come_out_as_arrays_in_their_order() -> None:
    count = 200_000
    values = np.random.default_rng(3).normal(100, 1, count).round(4)
    names = np.where(np.arange(count) % 3 == 0, "base", "new")
    text = "variant,value\n" + "".join(f"{n},{v}\n" for n, v in zip(names.tolist(), values.tolist(), strict=True))
    gathered = rows(text, unit="ns")
    assert np.array_equal(sample(gathered, "base").values, values[names == "base"])
    assert np.array_equal(sample(gathered, "new").values, values[names == "new"])


def summaries(*texts: str, **options: object) -> Gathered:
    sources = [source(text) for text in texts]
    return gather(sources, BY_NAME["table"], JudgeRequest(**options))  # type: ignore[arg-type]


LONG = "kernel,test,mean,sd,n,unit\na,x,10,0.5,12,ms\nb,x,11000,500,6,us\n"


def test_a_row_of_mean_sd_and_n_is_a_summary() -> None:
    [observed] = summaries(LONG).observations
    assert observed.groups == {"a": Summary(10, 0.5, 12), "b": Summary(11, 0.5, 6)}
    assert (observed.benchmark, observed.unit, observed.direction) == ("x", "ms", "lower")


@pytest.mark.parametrize("cell", ["{m} ({s})", "{m} ± {s}", "{m} +/- {s}", "**{m}** (±{s})", "Zen 3: {m} ({s})"])
def test_cells_of_mean_and_sd_are_read_in_every_spelling(cell: str) -> None:
    one, two = cell.format(m="79.800", s="0.1076"), cell.format(m="1,079.5", s="0.0772")
    [observed] = summaries(f"| machine | a | b |\n|:--|--:|---|\n| X | {one} | {two} |\n", n="12").observations
    assert observed.groups == {"a": Summary(79.8, 0.1076, 12), "b": Summary(1079.5, 0.0772, 12)}


def test_the_size_of_a_summary_must_come_from_somewhere() -> None:
    text = "kernel,mean,sd,runs_each\na,10,1,5\nb,10,1,5\n"
    with pytest.raises(errors.NoSize):
        summaries(text)
    assert summaries(text, n="runs_each").observations[0].groups["a"] == Summary(10, 1, 5)
    assert summaries(text, n="7").observations[0].groups["a"] == Summary(10, 1, 7)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("a,x,-1,0.5,12,ms", "column 'mean': '-1'"),
        ("a,x,10,-0.5,12,ms", "column 'sd': '-0.5'"),
        ("a,x,10,0.5,0,ms", "column 'n': '0'"),
        ("a,x,10,0.5,2.5,ms", "column 'n': '2.5'"),
    ],
)
def test_a_summary_that_can_t_be_is_named(row: str, says: str) -> None:
    with pytest.raises(errors.BadValue, match=says):
        summaries(f"kernel,test,mean,sd,n,unit\n{row}\n")


def test_two_summaries_of_one_variant_are_refused() -> None:
    with pytest.raises(errors.SummaryTwice):
        summaries(LONG + "a,x,12,0.5,12,ms\n")


def test_all_tables_of_a_markdown_file_are_found() -> None:
    text = "words | here\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nmore\n\nc | d\n--- | ---\n3 | 4\n5 | 6\n"
    tables = grids(source(text))
    assert [grid.header for grid in tables] == [("a", "b"), ("c", "d")]
    assert [(row.line, row.cells) for row in tables[1].rows] == [(11, ("3", "4")), (12, ("5", "6"))]


def _agree(texts: Sequence[str]) -> set[str]:
    return {shape_of(source(text)).delimiter for text in texts}


def test_a_delimiter_must_divide_every_line_alike() -> None:
    assert _agree(["variant;value\na, b;1\nc;2\n", "variant;value\na;1,5\nb;2,5\n"]) == {";"}


LATEX = r"""
\documentclass{article}
\begin{tabular}{@{}lrr@{}}
  \toprule
  Benchmark & \textbf{6.6} & 6.12 \\
  \midrule
  pipe (\textmu{}s) & 4.61 $\pm$ 0.02 & \textbf{4.52} $\pm$ 0.03 \\ % a note & no cell
  fork \& exec ($\mu$s) & 81.2(5) & 80.1(4) \\[2pt]
  stat (\textmu{}s) & 0.52(1) & 0.51(1) \\
  \bottomrule
\end{tabular}
"""


def table(text: str) -> Gathered:
    return gather([source(text)], BY_NAME["table"], JudgeRequest(n="10"))


def test_tables_of_latex_are_read() -> None:
    pipe, fork, _ = table(LATEX).observations
    assert (pipe.benchmark, pipe.unit, fork.benchmark) == ("pipe (µs)", "us", "fork & exec (µs)")
    assert pipe.groups == {"6.6": Summary(4.61, 0.02, 10), "6.12": Summary(4.52, 0.03, 10)}
    assert fork.groups == {"6.6": Summary(81.2, 0.5, 10), "6.12": Summary(80.1, 0.4, 10)}


def test_faults_of_latex_tables_name_their_lines() -> None:
    with pytest.raises(errors.SpannedCells, match="line 5"):
        table(LATEX.replace("6.12 ", r"\multicolumn{2}{c}{6.12} "))
    with pytest.raises(errors.BadValue, match="line 8"):
        table(LATEX.replace("80.1(4)", "fast"))
    with pytest.raises(errors.NoRows):
        table(LATEX.replace(r"\end{tabular}", ""))


def test_files_that_are_named_as_variants_are_compared_whatever_variants_are_in_them() -> None:
    texts = ("kernel,time\nx,1.1\nx,1.2\ny,1.3\ny,1.4\n", "kernel,time\nx,2.1\nx,2.2\ny,2.3\ny,2.4\n")
    named = [replace(source(text, name), is_named=True) for text, name in zip(texts, ("old", "new"), strict=True)]
    compared = gather(named, BY_NAME["csv"], JudgeRequest())
    assert compared.variants == ("old", "new")
    assert [one.benchmark for one in compared.observations] == ["time, kernel x", "time, kernel y"]
    pooled = rows(*texts)
    assert pooled.variants == ("x", "y")
    assert "the values of x, y in several files are taken together" in " ".join(pooled.notes)
    assert gather(named, BY_NAME["csv"], JudgeRequest(columns={"variant": "kernel"})).variants == ("x", "y")


def test_files_that_are_named_keep_the_names_of_kernels_that_differ_from_file_to_file() -> None:
    named = [
        replace(source(f"kernel,time\n{kernel},1.1\n{kernel},1.2\n", name), is_named=True)
        for kernel, name in (("6.6", "old"), ("6.12", "new"))
    ]
    assert gather(named, BY_NAME["csv"], JudgeRequest()).variants == ("6.6", "6.12")


def test_digits_right_behind_a_number_are_a_deviation_of_its_last_digits() -> None:
    deviations = {
        text: cell.sd for text in ("4.61(2)", "4.61(12)", "4.61 (2)", "100(5)") if (cell := cell_of(text, "."))
    }
    assert deviations == {"4.61(2)": "0.02", "4.61(12)": "0.12", "4.61 (2)": "2", "100(5)": "5"}


def test_durations_as_clocks_show_them_are_seconds_and_times_of_day_are_not() -> None:
    seconds = {
        text: cell.mean
        for text in ("1:12.3", "0:45,12", "1:02:03.5", "12:30", "09:15:00")
        if (cell := cell_of(text, "."))
    }
    assert seconds == {"1:12.3": "72.3", "0:45,12": "45.12", "1:02:03.5": "3723.5"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_headers_between_files_that_were_put_together_are_no_rows(end: str) -> None:
    lines = ["# made by cat", "kernel,time", "6.6,4.61", "kernel,time", "6.12,4.52", "kernel,time", "6.12,4.55"]
    gathered = rows(end.join([*lines, ""]))
    assert sample(gathered, "6.12").values.tolist() == [4.52, 4.55]
    with pytest.raises(errors.BadValue, match="line 5"):
        rows(end.join([*lines, ""]).replace("4.52", "four"))


def test_lists_of_numbers_by_name_are_variants_in_json() -> None:
    gathered = rows('{"6.6": [4.61, 4.63], "6.12": [4.52, 4.51, 4.55]}')
    assert sample(gathered, "6.12").values.tolist() == [4.52, 4.51, 4.55]
    with pytest.raises(errors.UnknownForm):
        recognise(source('{"6.6": [4.61], "name": "x"}'), JudgeRequest())


@pytest.mark.parametrize("kernels_are", ["outer", "inner"])
def test_lists_of_numbers_by_two_names_are_of_the_one_that_looks_like_kernels(kernels_are: str) -> None:
    by_kernel = {"6.6": {"lat": [4.6, 4.61], "bw": [100, 101]}, "6.12": {"lat": [4.5, 4.51], "bw": [110, 112]}}
    by_name = {name: {kernel: by_kernel[kernel][name] for kernel in by_kernel} for name in ("lat", "bw")}
    gathered = rows(json.dumps(by_kernel if kernels_are == "outer" else by_name))
    assert gathered.variants == ("6.6", "6.12")
    assert [observed.benchmark for observed in gathered.observations] == ["lat", "bw"]
    assert sample(gathered, "6.12", 1).values.tolist() == [110, 112]


def test_lists_of_numbers_by_two_names_of_which_none_is_of_kernels_are_refused() -> None:
    with pytest.raises(errors.UnknownForm):
        recognise(source('{"one": {"lat": [1, 2]}, "two": {"lat": [1, 2]}}'), JudgeRequest())


@pytest.mark.parametrize(
    "text",
    [
        "6.6: 4.61 4.63\n6.12:\t4.52, 4.51, 4.55 \n",
        "# in seconds\n\n6.6: 4.61 4.63\r\n6.12: 4.52 4.51 4.55\r\n",
        "6.6 = 4.61, 4.63\n6.12 = 4.52, 4.51, 4.55\n",
        "6.6: [4.61, 4.63]\n6.12: [4.52, 4.51, 4.55]\n",
        "6.6: 4.61s 4.63s\n6.12: 4.52s 4.51s 4.55s\n",
        "6.6: 4.61,4.63\n6.12: 4.52,4.51,4.55\n",
        "6.6,4.61,4.63\n6.12,4.52,4.51,4.55\n",
        "6.6;4.61;4.63\n6.12;4.52;4.51;4.55\n",
    ],
)
def test_lines_of_a_kernel_and_its_values_are_read(text: str) -> None:
    gathered = rows(text)
    assert gathered.variants == ("6.6", "6.12")
    assert sample(gathered, "6.12").values.tolist() == [4.52, 4.51, 4.55]
    assert recognise(source(text), JudgeRequest()) is BY_NAME["csv"]


@pytest.mark.parametrize(
    "text",
    [
        *("6.6: 4.61 4.63\nand more\n", "6.6: 4.61 4.63\n", "a: 1\nb: 2\n", "6.6: 4,61 4,63\n6.12: 4,52 4,51\n"),
        *("6.6: 461,463\n6.12: 452,451\n", "12:30 14 15\n12:31 14 16\n", "pipe,4.61,4.63\nfork,8.1,8.2\n"),
        *("6.6,1,4.61\n6.12,1,4.52\n", "6.6,4.61,4.63\n6.6,4.52,4.51\n", "6.6,4.6.1,4.63\n6.12,4.52,4.51\n"),
    ],
)
def test_other_lines_with_a_colon_are_no_such_rows(text: str) -> None:
    assert delimited.from_named_rows(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "linux-6.6,1,4.61\nlinux-6.6,2,4.63\nlinux-6.12,1,4.52\n",
            "linux-6.6,4.61\nlinux-6.6,4.63\nlinux-6.12,4.5\n",
        ),
        *("6.6: 461,463\n6.12: 452,451\n", "pipe = 461\nfork = 452\n"),
    ],
)
def test_a_first_line_of_a_name_and_its_values_is_no_header(text: str) -> None:
    with pytest.raises((errors.NoHeader, errors.NoColumn, errors.UnknownText)):
        rows(text)


def test_a_column_of_boots_with_a_unit_is_a_time_and_numbers_no_boots() -> None:
    table = "kernel,compile (min),boot (s)\n6.11,2.5,12.1\n6.11,2.6,12.3\n6.12,2.4,11.9\n6.12,2.3,11.8\n"
    with pytest.raises(errors.NoColumn):
        rows(table)
    gathered = rows(table, values=("compile (min)", "boot (s)"))
    assert [observed.benchmark for observed in gathered.observations] == ["compile (min)", "boot (s)"]
    assert rows(table.replace("boot (s)", "boot")).boots != gathered.boots


def test_a_column_of_moments_is_no_variant(tmp_path: Path) -> None:
    with pytest.raises(errors.MaybeWide, match=r"are 6\.11, 6\.12 variants"):
        judged(tmp_path, "timestamp,cpu,6.11,6.12\n1700000000,0,101,99\n1700000001,1,102,98\n1700000007,2,103,97\n")


def test_headings_that_may_be_values_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(errors.MaybeWide):
        judged(tmp_path, "fork,101.2,100.9\npipe,5.2,5.3\n")
    with pytest.raises(errors.MaybeWide):
        judged(tmp_path, "fork,6.2,6.9\npipe,5.2,5.3\n")
    assert judged(tmp_path, "test,6.2,6.9\npipe,5.2,5.3\n").variants == ("6.2", "6.9")
    assert judged(tmp_path, "fork,101.2,100.9\npipe,5.2,5.3\n", wide=True).variants == ("101.2", "100.9")


@pytest.mark.parametrize("label", ["run {}", "iteration {}", "Run{}"])
def test_rows_that_number_runs_are_no_benchmarks_whatever_their_column_is_called(label: str, tmp_path: Path) -> None:
    lines = ["| | 6.11 | 6.12 |", "|--|--|--|", *(f"| {label.format(n)} | {100 + n} | {99 + n} |" for n in (1, 2, 3))]
    with pytest.raises(errors.RunsInRows):
        judged(tmp_path, "\n".join([*lines, "| avg | 102 | 101 |", ""]))


@pytest.mark.parametrize("names", [("bore=0", "bore=1"), ("lat [us]", "bw [MB/s]"), ("a = b", "c d")])
def test_a_name_before_a_colon_may_have_signs_and_brackets(names: tuple[str, str]) -> None:
    gathered = rows("".join(f"{name}: 4.61 4.63\n" for name in names))
    assert [observed.benchmark for observed in gathered.observations] == list(names)


@pytest.mark.parametrize("sign", [": ", " = "])
def test_lines_of_a_benchmark_and_its_value_are_read_if_all_are_times_or_rates(sign: str) -> None:
    before, after = (f"fork{sign}{fork} us\npipe bandwidth{sign}5.2MB/s\n" for fork in (81.2, 80.1))
    gathered = rows(before, after)
    assert [(one.benchmark, one.unit) for one in gathered.observations] == [("fork", "us"), ("pipe bandwidth", "MB/s")]
    assert sample(gathered, "file1").values.tolist() == [80.1]
    for other in ("fork: 81.2 us\npipe: 5.2\n", "fork: 81.2 us\nmodel: 7 of 9\n", "fork: 81.2 us\npipe: 5 bananas\n"):
        assert delimited.from_named_rows(other) is None


def test_lists_of_numbers_by_other_names_are_benchmarks_in_json() -> None:
    before, after = '{"pipe": [4.61, 4.63], "fork": [81.2, 81.4]}', '{"pipe": [4.52, 4.51], "fork": [80.1, 80.3]}'
    gathered = rows(before, after)
    assert [one.benchmark for one in gathered.observations] == ["pipe", "fork"]
    assert gathered.variants == ("file0", "file1")
    assert rows(before).variants == ("file0",)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("10.2 ± 0.1 (n=5)", ("10.2", "0.1", "s", "5")),
        ("10.2 s ± 0.1 s, n = 12", ("10.2", "0.1", "s", "12")),
        ("10.2 (0.1, N=5)", ("10.2", "0.1", "s", "5")),
        ("10.2 s [n=5]", ("10.2", "", "s", "5")),
        ("10.2 ± 0.1", ("10.2", "0.1", "s", "")),
    ],
)
def test_a_cell_may_have_the_number_of_its_values(text: str, read: tuple[str, ...]) -> None:
    cell = cell_of(text, ".")
    assert cell is not None
    assert (cell.mean, cell.sd, cell.unit or "s", cell.size) == read


def test_numbers_in_cells_are_those_of_their_own_means_and_win_over_the_option() -> None:
    text = "test,6.11,6.12\nfork,10.2 ± 0.1 (n=5),10.4 ± 0.2 (n=6)\nexec,20.2 ± 0.1,20.4 ± 0.2 (n=3)\n"
    fork, exec_ = summaries(text, n="9").observations
    assert fork.groups == {"6.11": Summary(10.2, 0.1, 5), "6.12": Summary(10.4, 0.2, 6)}
    assert exec_.groups == {"6.11": Summary(20.2, 0.1, 9), "6.12": Summary(20.4, 0.2, 3)}
    with pytest.raises(errors.NoSize):
        summaries(text)


def test_a_cell_with_an_impossible_number_of_values_is_refused() -> None:
    table = "test,a,b\nfork,10.2 ± 0.1 (n=0),10.4 ± 0.2 (n=6)\n"
    with pytest.raises(errors.BadValue, match="line 2, column 'n': '0'"):
        gather([source(table)], BY_NAME["table"], JudgeRequest())


def test_a_first_line_of_measurements_in_the_unit_of_those_below_is_no_header() -> None:
    table = "fork,514.2 MB/s,1612.4 MB/s\nexec,352.1 MB/s,1471.0 MB/s\n"
    with pytest.raises(errors.NoHeader):
        gather([source(table)], BY_NAME["table"], JudgeRequest())
    sizes = "test,4 kB,64 kB\nread,10.2 us ± 0.1,10.4 us ± 0.2\n"  # units of something else are names
    assert gather([source(sizes)], BY_NAME["table"], JudgeRequest(n="5")).variants == ("4 kB", "64 kB")


@pytest.mark.parametrize(
    "words", ["lower is better", "lower better", "Lower-is-better", "less_is_better", "fewer = better"]
)
def test_words_say_which_direction_is_better_however_they_are_joined(words: str) -> None:
    assert units.direction("", f"score ({words})") == "lower"
    assert units.unit_of_column(f"score (points/s, {words})") == units.unit_of_column("score (points/s)")
