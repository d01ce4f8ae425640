"""Tables that come without a delimiter: aligned by blanks, as records in JSON, and in UTF-16."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from kdyno.judge.verdicts.model import FileReport
from kdyno.judge.verdicts.of_files import judge_files
from kdyno.measure.readers.errors import (
    BadValue,
    MaybeWide,
    NoColumn,
    NotText,
    UnalignedRow,
    UnknownForm,
    UnknownText,
)
from kdyno.measure.readers.formats.registry import recognise
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.source import FileSource, read


def report_of(tmp_path: Path, text: str | bytes, request: JudgeRequest | None = None) -> FileReport:
    file = tmp_path / "pasted.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return judge_files([str(file)], request or JudgeRequest(n="12"))


def judged(tmp_path: Path, text: str | bytes, request: JudgeRequest | None = None) -> list[str]:
    """Return the variants and benchmarks that one file is judged by."""
    return [f"{row.variant}: {row.benchmark}" for row in report_of(tmp_path, text, request).comparisons]


KERNELS_AS_COLUMNS = """Results on an EPYC 9654, 12 runs, lower is better:

Benchmark            6.12.0-generic    6.12.0-tuned     Delta
--------------------------------------------------------------
context switch       1.52 us           1.41 us          -7.2%
pipe latency         5.10 us ±  2%     4.95 us  ± 2%    -2.9%
mmap 64k             12.4 us           12.6 us          +1.6%
geomean              4.58 us           4.45 us          -2.9%

Measured by hand.
"""


def test_kernels_are_columns_of_an_aligned_table(tmp_path: Path) -> None:
    report = report_of(tmp_path, KERNELS_AS_COLUMNS)
    assert [(row.variant, row.benchmark) for row in report.comparisons] == [
        ("6.12.0-tuned", name) for name in ("context switch", "pipe latency", "mmap 64k")
    ]
    assert {(row.unit, row.direction) for row in report.benchmarks} == {("us", "lower")}
    assert "not read, since they are made from other numbers, or count: Delta" in report.notices


@pytest.mark.parametrize(
    "heading", ["ratio", "%", "Diff %", "rank", "min", "max", "p99", "stddev", "Speedup", "p-value"]
)
def test_columns_that_were_not_measured_are_not_variants_of_an_aligned_table(tmp_path: Path, heading: str) -> None:
    text = (
        f"Test    vanilla   patched   {heading}\nread    12.5      11.9      0.95\nwrite   22.5      21.9      0.97\n"
    )
    assert judged(tmp_path, text) == ["patched: read", "patched: write"]


def test_kernels_are_rows_of_an_aligned_table_beside_statistics(tmp_path: Path) -> None:
    text = """kernel         mean     sd    min    max   rank
=========     =====   ====   ====   ====   ====
vanilla       12.50   0.31   12.0   13.1      2
patched       11.90   0.22   11.4   12.3      1
"""
    report = report_of(tmp_path, text)
    [row] = report.comparisons
    assert (row.baseline_value, row.variant_value) == (12.5, 11.9)


PANDAS = """  kernel benchmark  time_us
0    old      pipe    12.50
1    old      pipe    12.61
2    new      pipe    11.90
3    new      pipe    11.95
"""


def test_what_pandas_prints_is_a_value_a_row_below_an_index_without_a_name(tmp_path: Path) -> None:
    report = report_of(tmp_path, PANDAS)
    assert [(row.variant, row.benchmark) for row in report.comparisons] == [("new", "pipe")]
    assert [(row.unit, row.direction) for row in report.benchmarks] == [("us", "lower")]


def test_columns_aligned_by_several_tabs_keep_their_decimal_commas(tmp_path: Path) -> None:
    text = "Test\t\t\talt (old)\tneu\nread\t\t\t12,5\t\t11,9\nwrite operations\t22,5\t\t21,9\n"
    report = report_of(tmp_path, text)
    assert [row.benchmark for row in report.comparisons] == ["read", "write operations"]
    assert [row.baseline_value for row in report.comparisons] == pytest.approx([12.5, 22.5])


def test_an_aligned_table_that_only_the_user_can_decide_is_refused_with_the_options(tmp_path: Path) -> None:
    with pytest.raises(MaybeWide, match="are alpha, beta variants") as wide:
        judged(tmp_path, "name     alpha   beta\nread     12.5    11.9\nwrite    22.5    21.9\n")
    assert "--wide" in wide.value.advice
    with pytest.raises(NoColumn, match="no column looks like the value") as rows:
        judged(
            tmp_path,
            "kernel   read (MB/s)   write (MB/s)\nalpha    1234.5        987.1\nbeta     1301.2        1001.0\n",
        )
    assert "--variant kernel --value 'read (MB/s),write (MB/s)'" in rows.value.advice


def test_an_aligned_row_with_an_empty_cell_is_refused_with_its_line(tmp_path: Path) -> None:
    text = "test     old    new\nread            12.5\nwrite    22.5   21.9\nopen     12.5   11.9\n"
    with pytest.raises(UnalignedRow, match="line 2: columns: 2, in most rows: 3") as caught:
        judged(tmp_path, text)
    assert "`-` where a cell is empty" in caught.value.advice
    report = report_of(tmp_path, text.replace("read            12.5", "read     -      12.5"))
    assert [row.baseline_value and round(row.baseline_value, 6) for row in report.comparisons] == [None, 22.5, 12.5]


def test_a_bad_cell_of_an_aligned_table_is_named_with_its_line_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match=r"line 5, column '6\.12\.0-tuned': 'broken' is not a positive number"):
        judged(tmp_path, KERNELS_AS_COLUMNS.replace("1.41 us", "broken "))


@pytest.mark.parametrize(
    "text",
    [
        "Run 1 took 5.2 seconds\nRun 2 took 5.3 seconds\n",
        "kernel time\nold 12.5 us\nnew 11.9 us\n",
        "It is fast.  Really.\nIt is new.  Very.\n",
        "one line   1.5\n",
    ],
)
def test_lines_with_blanks_are_not_tables_by_that_alone(text: str) -> None:
    with pytest.raises(UnknownText):
        recognise(FileSource("x.txt", "x", text.encode()), JudgeRequest())


def test_text_in_utf_16_is_read_as_that_in_utf_8_is(tmp_path: Path) -> None:
    text = KERNELS_AS_COLUMNS.replace("\n", "\r\n")
    for encoded in (text.encode("utf-16"), b"\xfe\xff" + text.encode("utf-16-be")):
        report = report_of(tmp_path, encoded)
        assert len(report.comparisons) == 3
        assert report.sha256 == (hashlib.sha256(encoded).hexdigest(),)


def test_half_a_character_of_utf_16_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cut.csv"
    file.write_bytes("variant,value\n".encode("utf-16")[:-1])
    with pytest.raises(NotText, match="it begins like UTF-16, and is not valid UTF-16"):
        read(str(file))


def records(**more: object) -> list[dict[str, object]]:
    return [
        {"kernel": kernel, "benchmark": "pipe, 64k", "value": value, "unit": "us", **more}
        for kernel, value in (("old", 12), ("old", 12.5), ("new", 11.9), ("new", 1.18e1))
    ]


def test_a_list_of_records_is_read_as_csv_with_their_keys_as_columns(tmp_path: Path) -> None:
    report = report_of(tmp_path, json.dumps(records(note=None)))
    assert [(row.variant, row.benchmark) for row in report.comparisons] == [("new", "pipe, 64k")]
    assert [(row.unit, row.direction) for row in report.benchmarks] == [("us", "lower")]
    assert report.columns == {"value": "value", "variant": "kernel", "benchmark": "benchmark", "unit": "unit"}


def test_records_of_means_are_a_table_of_means(tmp_path: Path) -> None:
    rows = [{"kernel": "old", "mean": 12.5, "sd": 0.2, "n": 10}, {"kernel": "new", "mean": 11.9, "sd": 0.1, "n": 10}]
    [row] = report_of(tmp_path, json.dumps(rows), JudgeRequest()).comparisons
    assert (row.baseline_value, row.variant_value) == (12.5, 11.9)


def test_a_fault_in_a_record_is_located_in_the_csv_that_it_becomes(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match=r"pasted.txt as CSV, line 3, column 'value': '-12\.5' is not a positive number"):
        judged(tmp_path, json.dumps(records()).replace("12.5", "-12.5"))


@pytest.mark.parametrize("document", [[], [1.5], [{}], [{"kernel": "a", "values": [1.5]}], [{"kernel": "a"}, 1]])
def test_lists_of_anything_but_flat_records_are_refused(document: object) -> None:
    with pytest.raises(UnknownForm):
        recognise(FileSource("x.json", "x", json.dumps(document).encode()), JudgeRequest())
