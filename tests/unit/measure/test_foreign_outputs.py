"""Outputs that practitioners paste: hackbench, perf bench, sysbench, fio, iperf3, lkp, UnixBench, time, go, numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kdyno.base.errors import UserError
from kdyno.judge.stats.observations import Summary
from kdyno.judge.verdicts.of_files import gather, judge_files
from kdyno.measure.readers.errors import Broken, MixedUnits, NoSize, NothingThere, TwoMarks, UnknownText
from kdyno.measure.readers.formats.registry import BY_NAME, READERS, recognise
from kdyno.measure.readers.readings import FileSeries, ProgramOutput
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.source import FileSource, read
from kdyno.measure.workload.definition import definition
from kdyno.measure.workload.printed import reader_of

DATA = Path(__file__).parents[2] / "data" / "foreign"


def output(text: str | Path, form: str = "", **options: object) -> ProgramOutput:
    source = read(str(text)) if isinstance(text, Path) else FileSource("x.txt", "x", text.encode())
    request = JudgeRequest(**options)  # type: ignore[arg-type]
    reader = recognise(source, request)
    if form:
        assert reader.name == form
    result = reader.read(source, request)
    assert isinstance(result, ProgramOutput)
    return result


def values(result: ProgramOutput) -> dict[str, tuple[tuple[float, ...], str]]:
    return {series.benchmark: (series.values, series.unit) for series in result.series}


def only(result: ProgramOutput) -> FileSeries:
    [series] = result.series
    return series


def test_runs_of_hackbench_are_values_of_what_they_have_in_common() -> None:
    series = only(output(DATA / "hackbench-before.txt", "hackbench"))
    assert series.benchmark == "hackbench, process, 20 groups, 40 fds, 1000 messages of 100 bytes"
    assert (len(series.values), series.unit, series.direction, series.step) == (3, "s", "lower", 0.001)


def test_hackbench_with_other_settings_is_another_benchmark() -> None:
    text = (DATA / "hackbench-before.txt").read_text()
    both = output(text + text.replace("process mode", "threaded mode"), "hackbench")
    assert len({series.benchmark for series in both.series}) == 2


@pytest.mark.parametrize("text", ["Time: 5.844\nTime: 5.85\n", "Running with 10*40 (== 400) tasks.\nTime: 5.844\n"])
def test_what_older_hackbenches_and_grep_leave_is_read(text: str) -> None:
    assert only(output(text, "hackbench")).values[0] == 5.844


@pytest.mark.parametrize(
    ("lines", "benchmark", "value", "unit"),
    [
        (
            "# Running 'sched/pipe' benchmark:\n     Total time: 4.912 [sec]\n\n"
            "       4.912345 usecs/op\n  203568 ops/sec",
            "perf-bench, sched/pipe",
            4.912345,
            "us/op",
        ),
        (
            "# Running 'sched/messaging' benchmark:\n# 20 sender and receiver processes per group\n"
            "# 10 groups == 400 processes run\n\n     Total time: 0.308 [sec]",
            "perf-bench, sched/messaging, 20 sender and receiver processes, 10 groups of processes",
            0.308,
            "s",
        ),
        (
            "# Running 'syscall/basic' benchmark:\n# Executed 10,000,000 getppid() calls\n"
            "     Total time: 1.123 [sec]\n\n"
            "       0.112345 usecs/op\n      8,901,234 ops/sec",
            "perf-bench, syscall/basic",
            0.112345,
            "us/op",
        ),
        (
            "# Running 'mem/memcpy' benchmark:\n# function 'default' (Default memcpy() provided by glibc)\n"
            "# Copying 1MB bytes ...\n\n      18.385123 GB/sec",
            "perf-bench, mem/memcpy, default, 1MB bytes",
            18.385123,
            "GB/s",
        ),
        (
            "# Running 'futex/hash' benchmark:\nRun summary [PID 12]: 8 threads, each operating on 1024 futexes\n\n"
            "[thread  0] futexes: 0x1 ... 0x2 [ 1234 ops/sec ]\n\n"
            "Averaged 1442867 operations/sec (+- 0.32%), total secs = 10",
            "perf-bench, futex/hash",
            1442867,
            "ops/s",
        ),
    ],
)
def test_one_number_of_each_of_perf_s_benchmarks_is_read(lines: str, benchmark: str, value: float, unit: str) -> None:
    series = only(output(lines + "\n", "perf-bench"))
    assert (series.benchmark, series.values, series.unit) == (benchmark, (value,), unit)


def test_sysbench_is_its_rate_and_not_the_time_that_it_was_given() -> None:
    series = only(output(DATA / "sysbench-before.txt", "sysbench"))
    assert (series.benchmark, series.unit, series.values) == ("sysbench cpu, 2 threads", "events/s", (8123.4,))
    text = (DATA / "sysbench-before.txt").read_text().replace("CPU speed:", "").replace("Prime numbers limit", "Limit")
    threads = text.replace("    events per second:  8123.40\n", "")
    assert only(output(threads, "sysbench")).values == (8123.16,)  # 81,234 events in 10.0003 s


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "Total operations: 104857600 (8123456.78 per second)\n\n102400.00 MiB transferred (7933.06 MiB/sec)\n",
            {"sysbench memory, 2 threads": ((7933.06,), "MiB/s")},
        ),
        (
            "SQL statistics:\n    transactions:    12345  (1234.48 per sec.)\n"
            "    queries:  246900 (24689.67 per sec.)\n",
            {"sysbench OLTP, 2 threads": ((1234.48,), "transactions/s")},
        ),
        (
            "File operations:\n    reads/s:                      1234.50\n    writes/s:                     823.00\n",
            {
                "sysbench file, 2 threads reads": ((1234.5,), "1/s"),
                "sysbench file, 2 threads writes": ((823.0,), "1/s"),
            },
        ),
    ],
)
def test_every_test_of_sysbench_is_read(lines: str, expected: dict[str, tuple[tuple[float, ...], str]]) -> None:
    head = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\n"
    assert values(output(f"{head}Number of threads: 2\n\n{lines}", "sysbench")) == expected


def test_clones_of_a_job_of_fio_are_added_and_bandwidth_is_not_read_again() -> None:
    series = only(output(DATA / "fio-before.json", "fio"))
    assert (series.benchmark, series.unit, series.direction) == ("randread read", "IOPS", "higher")
    assert series.values == pytest.approx((2.01 * 20117.5,))


def test_runs_of_fio_one_behind_the_other_are_values_and_failed_jobs_are_said() -> None:
    text = (DATA / "fio-before.json").read_text()
    assert len(only(output(text + text, "fio")).values) == 2
    failed = json.loads(text.partition("\n")[2])
    failed["jobs"][0]["error"] = 5
    result = output(json.dumps(failed), "fio")
    assert only(result).values == pytest.approx((1.01 * 20117.5,))
    assert "randread failed: left out" in result.notes


@pytest.mark.parametrize(
    "line",
    ["  read: IOPS=12.8k, BW=50.0MiB/s (52.4MB/s)(3000MiB/60001msec)", "  read : io=3G, bw=51199KB/s, iops=12800"],
)
def test_the_text_of_old_and_new_fio_is_read(line: str) -> None:
    head = "rr: (g=0): rw=randread, bs=4K\nfio-3.33\nStarting 1 process\n\n"
    text = f"{head}rr: (groupid=0, jobs=1): err= 0: pid=9\n{line}\n"
    assert values(output(text, "fio")) == {"rr read": ((12800.0,), "IOPS")}


def test_iperf3_is_what_the_receiver_got_of_all_streams() -> None:
    assert values(output(DATA / "iperf3-before.json", "iperf3")) == {"iperf3 TCP, 2 streams": ((9.6e9,), "b/s")}
    text = only(output(DATA / "iperf3-before.txt", "iperf3-text"))
    assert (text.values, text.unit, text.direction) == ((9.58,), "Gb/s", "higher")


def test_a_failed_run_of_iperf3_and_both_ways_are_told_apart() -> None:
    document = json.loads((DATA / "iperf3-before.json").read_text())
    document["end"]["sum_received_bidir_reverse"] = {"bits_per_second": 5e9}
    failed = json.dumps({"start": {"version": "iperf 3.12", "test_start": {}}, "error": "connection refused"})
    result = output(f"{json.dumps(document)}\n{failed}\n", "iperf3")
    assert values(result) == {
        "iperf3 TCP, 2 streams": ((9.6e9,), "b/s"),
        "iperf3 TCP, 2 streams, reverse of both": ((5e9,), "b/s"),
    }
    assert result.notes == ("a run failed (connection refused): left out",)


def test_redis_benchmark_is_read_in_its_four_forms() -> None:
    long = values(output(DATA / "redis-before.txt", "redis-benchmark"))
    assert long["redis-benchmark, SET, 50 clients, 3 bytes"] == ((98814.23,), "requests/s")
    quiet = "SET: rps=0.0 (overall: nan) avg_msec=nan\rSET: 81300.81 requests per second, p50=0.303 msec\n"
    assert values(output(quiet)) == {"redis-benchmark SET": ((81300.81,), "requests/s")}
    columns = '"test","rps","avg_latency_ms","min_latency_ms"\n'
    table = columns + '"SET","81300.81","0.312","0.096"\n"GET","83300.81","0.3","0.1"\n'
    assert values(output(table, "redis-benchmark")) == {
        "redis-benchmark SET": ((81300.81,), "requests/s"),
        "redis-benchmark GET": ((83300.81,), "requests/s"),
    }
    older = '"SET","81300.81"\n"GET","83300.81"\n'
    assert set(values(output(older, "redis-benchmark"))) == {"redis-benchmark SET", "redis-benchmark GET"}


@pytest.mark.parametrize(("form", "value"), [("wrk", 59801.12), ("ab", 16207.45)])
def test_requests_per_second_of_web_servers_are_read(form: str, value: float) -> None:
    series = only(output(DATA / f"{form}-before.txt", form))
    assert (series.values, series.direction) == ((value,), "higher")


def test_wrk2_is_its_latency_since_its_rate_was_asked_for() -> None:
    series = only(output(DATA / "wrk2-before.txt"))
    assert (series.values, series.unit, series.direction) == ((6.46,), "ms", "lower")
    assert series.benchmark == "wrk2 mean latency, http://127.0.0.1:8080/index.html, 2 threads, 100 connections"


def test_a_comma_in_what_a_program_printed_is_said_if_it_may_be_a_decimal_one() -> None:
    text = (DATA / "hackbench-before.txt").read_text()
    printed = re.sub(r"Time: [\d.]+", "Time: 1,412", text)
    source = FileSource("hackbench.txt", "hackbench", printed.encode())
    result = BY_NAME["hackbench"].read(source, JudgeRequest())
    assert isinstance(result, ProgramOutput)
    assert result.notes == ("1,412 was read with a comma between thousands",)


def test_unixbench_is_its_results_and_neither_its_indices_nor_its_baselines() -> None:
    result = values(output(DATA / "unixbench-before.txt", "unixbench"))
    assert result["unixbench Pipe Throughput, 1 at once"] == ((1651218.4,), "lps")
    assert result["unixbench Pipe Throughput, 4 at once"] == ((6151218.4,), "lps")
    assert {value for numbers, _ in result.values() for value in numbers} == {41588914.8, 1651218.4, 6151218.4}
    table = (DATA / "unixbench-before.txt").read_text().split("System Benchmarks")[1]
    [(_, index)] = [
        item for item in values(output(f"System Benchmarks{table}", "unixbench")).items() if "Pipe" in item[0]
    ]
    assert index == ((1651218.4,), "")


@pytest.mark.parametrize(
    "text",
    [
        "real\t0m12.345s\nuser\t0m40.100s\nsys\t0m3.200s\n",
        "some output\n\nreal\t0m12,345s\nuser\t0m40,100s\nsys\t0m3,200s\n",
        "real 12.345\nuser 40.10\nsys 3.20\n",
        "40.10user 3.20system 0:12.345elapsed 350%CPU (0avgtext+0avgdata 12345maxresident)k\n",
        "make -j4  40.10s user 3.20s system 350% cpu 12.345 total\n",
        "\tUser time (seconds): 40.10\n\tSystem time (seconds): 3.20\n"
        "\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:12.345\n",
    ],
)
def test_every_shell_s_time_is_read(text: str) -> None:
    assert values(output(text, "time")) == {
        "time real": ((12.345,), "s"),
        "time user": ((40.1,), "s"),
        "time sys": ((3.2,), "s"),
    }


def test_times_of_minutes_and_hours_are_seconds() -> None:
    assert values(output("real\t12m1.5s\nuser\t1m0.5s\nsys\t0m3.25s\n"))["time real"] == ((721.5,), "s")
    text = "1.5user 3.2system 1:02:03elapsed 350%CPU\n"
    assert values(output(text))["time real"] == ((3723.0,), "s")


def test_several_times_in_one_file_are_values() -> None:
    assert len(values(output(DATA / "time-before.txt", "time"))["time real"][0]) == 3


def test_go_s_benchmarks_are_read_and_bandwidth_is_their_time_told_again() -> None:
    result = output(DATA / "go-bench-before.txt", "go-bench")
    assert {name: len(numbers) for name, (numbers, _) in values(result).items()} == {"Pipe-4": 3, "Pipe-4 B/op": 3}
    text = "BenchmarkCopy/4k-8   \t   20000\t     61234 ns/op\t 66.90 MB/s\n"
    assert values(output(text, "go-bench")) == {"Copy/4k-8": ((61234.0,), "ns/op")}


@pytest.mark.parametrize(
    ("text", "expected", "unit"),
    [
        ("12.31\n12.35\n12.29\n", (12.31, 12.35, 12.29), ""),
        ("# seconds\r\n12.31\r\n\r\n12.35\r\n", (12.31, 12.35), ""),
        ("\ufeff12.31 s\n12.35 s\n", (12.31, 12.35), "s"),
        ("12,31\n12,35\n", (12.31, 12.35), ""),
        ("1,234\n1,250.5\n", (1234.0, 1250.5), ""),
        ("12.31\nNA\n12.35\n", (12.31, 12.35), ""),
        ("5\n", (5.0,), ""),
    ],
)
def test_one_number_a_line_is_read_as_it_is(text: str, expected: tuple[float, ...], unit: str) -> None:
    series = only(output(text, "numbers"))
    assert (series.values, series.unit) == (expected, unit)


def test_numbers_of_two_marks_or_units_are_refused() -> None:
    with pytest.raises(TwoMarks):
        output("12,31\n12.35\n", "numbers")
    with pytest.raises(MixedUnits, match="'s' and in 'MB'"):
        output("12.31 s\n12.35 MB\n", "numbers")


def test_lkp_s_comparison_is_of_commits_and_of_the_test_alone() -> None:
    source = read(str(DATA / "lkp.txt"))
    result = BY_NAME["lkp"].read(source, JudgeRequest())
    assert isinstance(result, ProgramOutput)
    assert {series.benchmark for series in result.series} == {"will-it-scale.workload", "will-it-scale.per_process_ops"}
    gathered = gather([source], BY_NAME["lkp"], JudgeRequest())
    assert gathered.variants == ("v6.12-rc1", "1234567890")
    [observed] = [own for own in gathered.observations if own.benchmark.endswith("per_process_ops")]
    assert observed.direction == "higher"
    for variant, mean, share in (("v6.12-rc1", 402192, 0.03), ("1234567890", 440400, 0.02)):
        summary = observed.groups[variant]
        assert isinstance(summary, Summary)
        assert (summary.mean, summary.n) == (mean, 6)
        assert summary.sd == pytest.approx(share * mean)
    assert any("2 % is assumed" in note for note in result.notes)


def test_lkp_s_number_of_runs_is_asked_for_where_no_row_says_it() -> None:
    text = (DATA / "lkp.txt").read_text().replace(":6 ", "   ").replace(":6", "")
    source = FileSource("lkp.txt", "lkp", text.encode())
    with pytest.raises(NoSize):
        gather([source], BY_NAME["lkp"], JudgeRequest())
    assert gather([source], BY_NAME["lkp"], JudgeRequest(n="4")).variants == ("v6.12-rc1", "1234567890")


def test_lkp_s_comparison_of_three_commits_is_read() -> None:
    text = (
        'commit:\n  a1 ("x")\n  b2 ("y")\n  c3 ("z")\n\n      a1       b2        c3\n---------- ---------- ----------\n'
        "  %stddev  %change   %stddev  %change  %stddev\n"
        "   100 ±  2%   -15.5%   84 ±  3%    +1.0%   101 ±  2%  fio.read_iops\n"
    )
    assert [(s.variant, s.values) for s in output(text, "lkp").series] == [
        ("a1", (100.0,)),
        ("b2", (84.0,)),
        ("c3", (101.0,)),
    ]


def test_matrix_json_has_a_value_for_each_run() -> None:
    result = output(DATA / "lkp-before.json", "lkp")
    assert {name: len(numbers) for name, (numbers, _) in values(result).items()} == {
        "will-it-scale.per_process_ops": 4,
        "will-it-scale.workload": 4,
    }
    assert (
        "metrics of monitors were not read: 1; they explain a change, but are not measurements of the test"
        in result.notes
    )


@pytest.mark.parametrize("text", ["Hello\nworld, this is no table\nat all\n", "warning: x\nok\n42\n"])
def test_a_text_of_no_format_is_called_so_with_the_number_of_formats_and_a_way_out(text: str) -> None:
    with pytest.raises(UnknownText, match=f"not recognised as any of the {len(READERS)} formats") as caught:
        output(text)
    assert all(name in caught.value.advice for name in BY_NAME)
    assert "make CSV with the columns variant, benchmark and value" in caught.value.advice


@pytest.mark.parametrize("form", ["fio", "iperf3"])
@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9])
def test_json_that_breaks_off_is_refused_without_python_s_words(form: str, cut: float) -> None:
    text = (DATA / f"{form}-before.json").read_text()
    source = FileSource("x.json", "x", text[: int(len(text) * cut)].encode())
    with pytest.raises(Broken) as caught:
        BY_NAME[form].read(source, JudgeRequest())
    assert "invalid JSON from" in str(caught.value)


@pytest.mark.parametrize("reader", [reader.name for reader in READERS])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "x\n",
        "{",
        "{}\n",
        "[1",
        "1,2\n",
        '"',
        "a,b\n1\n",
        "kernel,time\na,x\n",
        "|a|\n|-|\n",
        "commit:\n%change\n",
        "\ufeff",
    ],
)
def test_no_file_brings_forth_words_of_python_or_pandas(reader: str, text: str) -> None:
    source = FileSource("x", "x", text.encode())
    try:
        gather([source], BY_NAME[reader], JudgeRequest())
    except UserError as error:
        said = f"{error} {error.advice}"
        for word in (
            "Error tokenizing",
            "Expecting",
            "char ",
            "dtype",
            "NoneType",
            "object has",
            "could not convert",
            "Length",
        ):
            assert word not in said


def test_files_of_hackbench_judge_one_kernel_against_another() -> None:
    names = [f"{name}={DATA}/hackbench-{name}.txt" for name in ("before", "after")]
    [comparison] = judge_files(names, JudgeRequest()).comparisons
    assert comparison.verdict == "slower"


DEFINITION = """
name = "mine"
description = "mine"
command = "true"

[metrics]
rate = { pattern = '^rate: ([0-9.]+)', unit = "ops/s", direction = "higher" }
size = { json = "size", unit = "B", direction = "lower" }
took = { time = "elapsed" }
"""


def written(tmp_path: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return [f"{name[0]}={tmp_path / name}" for name in texts]


def test_output_of_a_workload_is_read_with_the_metrics_of_its_definition(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(DEFINITION)
    reader = reader_of(definition(str(tmp_path / "mine.toml")))
    files = written(tmp_path, a1="x\nrate: 100.5\n", a2="rate: 100.7\n", b1="rate: 90.5\n", b2="rate: 90.3\n")
    report = judge_files(files, JudgeRequest(), own=reader)
    [comparison] = report.comparisons
    assert (comparison.benchmark, comparison.direction, comparison.verdict) == ("mine.rate", "higher", "slower")
    assert report.benchmarks[0].unit == "ops/s"
    assert any(notice.startswith("took isn't printed") for notice in report.notices)
    assert any(
        notice.startswith("size wasn't read: the output is not a JSON document: invalid JSON from line 1")
        for notice in report.notices
    )


@pytest.mark.parametrize("text", ["nothing\n", "rate: 1\nrate: 2\n", "rate: 0\n", "rate: 1e99\n" * 2])
def test_an_output_without_the_numbers_of_its_workload_is_refused_with_the_reasons(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.toml").write_text(DEFINITION)
    reader = reader_of(definition(str(tmp_path / "mine.toml")))
    with pytest.raises(NothingThere, match="rate wasn't read: "):
        judge_files(written(tmp_path, a="rate: 100\n", b=text), JudgeRequest(), own=reader)
