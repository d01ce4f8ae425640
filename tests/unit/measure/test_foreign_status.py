"""Columns of a status: what failed is not a measurement, and a status is not a variant."""

from __future__ import annotations

import json

import pytest

from kdyno.judge.foreign.gathered import Gathered
from kdyno.judge.stats.observations import ReplicateSample
from kdyno.judge.verdicts.of_files import gather
from kdyno.measure.readers import errors
from kdyno.measure.readers.formats.registry import recognise
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.source import FileSource

TIMES = {"a": ("1.02", "1.03", "60.0"), "b": ("1.12", "1.13", "0.003")}
"""Seconds of each variant; the last of each failed."""


def read(text: str, name: str = "data.csv", **options: object) -> Gathered:
    source = FileSource(shown=name, name="data", data=text.encode())
    request = JudgeRequest(**options)  # type: ignore[arg-type]
    return gather([source], recognise(source, request), request)


def table(column: str, passed: str, failed: str, delimiter: str = ",") -> str:
    lines = [["kernel", "test", "time_s", column]]
    for variant, times in TIMES.items():
        lines += [[variant, "pipe", time, passed] for time in times[:-1]] + [[variant, "pipe", times[-1], failed]]
    return "".join(delimiter.join(line) + "\n" for line in lines)


def values(gathered: Gathered) -> dict[str, list[float]]:
    numbers: dict[str, list[float]] = {}
    for observations in gathered.observations:
        for name, group in observations.groups.items():
            assert isinstance(group, ReplicateSample)
            numbers.setdefault(name, []).extend(group.values.tolist())
    return numbers


def require_only_measurements(gathered: Gathered) -> None:
    assert values(gathered) == {"a": [1.02, 1.03], "b": [1.12, 1.13]}


@pytest.mark.parametrize(
    ("column", "passed", "failed"),
    [
        ("status", "PASS", "FAIL"),
        ("status", "ok", "not ok"),
        ("Status", "", "failed"),
        ("Result", "OK", "timeout"),
        ("outcome", "success", "timed-out"),
        ("verdict", "pass", "xfail"),
        ("state", "completed", "Killed"),
        ("anything", "✅", "❌"),
        ("anything", "✔\ufe0f", "✘"),
        ("passed", "True", "False"),
        ("success", "1", "0"),
        ("failed", "no", "yes"),
        ("timed out", "false", "true"),
        ("exit code", "0", "137"),
        ("rc", "0", "-11"),
        ("status", "yes", "no"),
    ],
)
def test_rows_that_failed_are_left_out_and_counted(column: str, passed: str, failed: str) -> None:
    gathered = read(table(column, passed, failed))
    require_only_measurements(gathered)
    assert f"rows that failed were left out ({column}): 1 of a, 1 of b" in gathered.notes


@pytest.mark.parametrize("delimiter", ["\t", ";", "   "])
def test_they_are_left_out_of_any_table(delimiter: str) -> None:
    require_only_measurements(read(table("status", "PASS", "FAIL", delimiter), "data.txt"))


def test_they_are_left_out_of_a_pipe_table_and_of_records_in_json() -> None:
    header, *rows = [line.split(",") for line in table("status", "✅", "❌").splitlines()]
    pipes = [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]
    gathered = read("\n".join(pipes), "data.md")
    require_only_measurements(gathered)
    assert "rows that failed were left out (status): 2" in gathered.notes
    records = [dict(zip(header, row, strict=True)) for row in rows]
    require_only_measurements(read(json.dumps(records), "data.json"))


@pytest.mark.parametrize("value", ["timeout", "0", "-1", "n/a", "1 ms 2"])
def test_whatever_stands_in_place_of_a_number_that_failed_is_not_read(value: str) -> None:
    require_only_measurements(read(table("status", "PASS", "FAIL").replace("60.0", value)))


def test_a_bad_number_of_a_row_that_did_not_fail_is_named_with_its_own_line() -> None:
    text = table("status", "PASS", "FAIL").replace("60.0", "timeout").replace("1.13", "slow")
    with pytest.raises(errors.BadValue, match=r"line 6, column 'time_s': 'slow'"):
        read(text)


def test_a_mean_that_failed_is_not_judged() -> None:
    text = "kernel,mean,sd,n,status\na,1.02,0.01,5,PASS\nb,9.02,0.01,5,FAIL\nc,1.13,0.02,5,PASS\n"
    [observations] = read(text).observations
    assert list(observations.groups) == ["a", "c"]


def test_two_columns_of_a_status_both_count() -> None:
    lines = ["kernel,time,status,exit_code", "a,1,ok,0", "a,9,ok,1", "a,9,error,0", "b,2,ok,0", "b,2,ok,0"]
    assert values(read("\n".join(lines))) == {"a": [1], "b": [2, 2]}


@pytest.mark.parametrize("option", ["variant", "benchmark"])
def test_a_status_is_a_variant_or_a_benchmark_only_if_it_is_named(option: str) -> None:
    text = "status,time\nPASS,1\nPASS,2\nFAIL,9\nFAIL,8\n"
    assert values(read(text)) == {"data": [1, 2]}
    gathered = read(text, columns={option: "status"})
    assert gathered.columns[option] == "status"
    assert sum(map(len, values(gathered).values())) == 4


def test_all_rows_are_measurements_if_the_user_says_so() -> None:
    gathered = read(table("status", "PASS", "FAIL"), pooled=("status",))
    assert values(gathered) == {name: list(map(float, times)) for name, times in TIMES.items()}


def test_a_file_in_which_all_failed_is_refused() -> None:
    with pytest.raises(errors.AllFailed, match="all measurements failed, by the column status") as caught:
        read(table("status", "FAIL", "FAIL"))
    assert "--pool status" in caught.value.advice


def test_a_word_that_means_neither_is_asked_about() -> None:
    text = table("status", "PASS", "FAIL") + "a,pipe,1.0,PASS\n" * 100 + "a,pipe,1.0,FLAKY\n"
    with pytest.raises(errors.UnknownStatus, match="'FLAKY' means neither"):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "kernel,time\ngood,1\ngood,2\nbad,3\nbad,4\n",
        "pass,kernel,time\n0,a,1\n1,a,2\n0,b,3\n1,b,4\n",
        "kernel,time,error\na,1,0.1\na,2,0.2\nb,3,0.1\nb,4,0.3\n",
    ],
)
def test_kernels_passes_and_errors_of_a_mean_are_not_a_status(text: str) -> None:
    assert sum(map(len, values(read(text)).values())) == 4


def test_columns_that_count_what_passed_are_neither_variants_nor_values() -> None:
    with pytest.raises(errors.NotAMeasurement, match="PASS, FAIL, SKIP"):
        read("test,PASS,FAIL,SKIP\nltp,100,3,4\nkselftest,50,2,9\n")


def test_kernels_that_are_called_good_and_bad_are_variants() -> None:
    gathered = read("test,good,bad\npipe,1.02,1.12\nfork,2.03,2.15\n")
    assert list(gathered.observations[0].groups) == ["good", "bad"]
