"""Texts that people paste: other forms of known programs, and tables whose columns are statistics or runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdyno.judge.verdicts.of_files import judge_files
from kdyno.judge.verdicts.rows import table_rows
from kdyno.measure.readers.errors import (
    ADirectory,
    Broken,
    FileError,
    MaybeWide,
    MixedUnits,
    NoColumn,
    NoHeader,
    NoHeading,
    Normalised,
    NoSize,
    PercentilesInRows,
    RunsInColumns,
    RunsInRows,
    SeveralValues,
    SpannedCells,
    TablesAlike,
    UnknownText,
)
from kdyno.measure.readers.formats import (
    criterion,
    fio,
    google_benchmark,
    hyperfine,
    mmtests,
    netperf,
    pct_imp,
    schbench,
)
from kdyno.measure.readers.formats.registry import BY_NAME, recognise
from kdyno.measure.readers.readings import FileSeries, ProgramOutput
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.source import FileSource, read

DATA = Path(__file__).parents[2] / "data" / "foreign"


def source(text: str) -> FileSource:
    return FileSource(shown="file.txt", name="file", data=text.encode())


def named(output: ProgramOutput) -> dict[str, FileSeries]:
    return {series.command or series.benchmark: series for series in output.series}


def judged(tmp_path: Path, text: str, request: JudgeRequest | None = None, name: str = "file.csv") -> list[str]:
    """Return the variants and benchmarks that one file is judged by."""
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    report = judge_files([str(file)], request or JudgeRequest())
    return [f"{row.variant}: {row.benchmark}" for row in report.comparisons]


HYPERFINE = """Benchmark 1: ./generic
  Time (mean ± σ):      58.4 ms ±   0.3 ms    [User: 31.2 ms, System: 26.9 ms]
  Range (min … max):    57.9 ms …  59.1 ms    50 runs

Benchmark 2: ./tuned
  Time (mean ± σ):      1.256 s ± 4.0 ms    [User: 30.2 ms, System: 26.0 ms]
  Range (min … max):    1.252 s …  1.300 s    51 runs

Summary
  ./tuned ran
    1.03 ± 0.01 times faster than ./generic
"""


def test_what_hyperfine_prints_is_read_with_its_deviations_and_numbers_of_runs() -> None:
    series = named(hyperfine.read(source(HYPERFINE)))
    assert list(series) == ["./generic", "./tuned"]
    assert (series["./generic"].values, series["./generic"].unit, series["./generic"].n) == ((58.4,), "ms", 50)
    assert series["./tuned"].sd == pytest.approx(0.004 / 1.256)
    assert series["./tuned"].n == 51


def test_colours_of_a_terminal_do_not_change_a_format(tmp_path: Path) -> None:
    file = tmp_path / "colours.txt"
    file.write_text(HYPERFINE.replace("58.4 ms", "\x1b[1;32m58.4 ms\x1b[0m"), encoding="utf-8")
    assert recognise(read(str(file)), JudgeRequest()).name == "hyperfine"
    assert named(hyperfine.read(read(str(file))))["./generic"].values == (58.4,)


def test_commands_of_one_name_are_distinguished_by_their_parameters() -> None:
    results = [
        {"command": "build", "times": [2.0, 2.1], "exit_codes": [0, 0], "parameters": {"cc": cc}}
        for cc in ("gcc", "clang")
    ]
    assert list(named(hyperfine.read(source(json.dumps({"results": results}))))) == ["build, cc gcc", "build, cc clang"]


def test_parameters_are_in_the_csv_of_hyperfine_as_well() -> None:
    head = "command,mean,stddev,median,user,system,min,max,parameter_cc\n"
    rows = "build,0.5,0.01,0.5,0.4,0.1,0.4,0.6,gcc\nbuild,0.4,0.01,0.4,0.3,0.1,0.3,0.5,clang\n"
    assert list(named(hyperfine.read(source(head + rows)))) == ["build, cc gcc", "build, cc clang"]


ASCIIDOC = """[cols="<,>,>,>,>"]
|===
| Command
| Mean [ms]
| Min [ms]
| Max [ms]
| Relative

| `generic`
| 58.4 ± 0.3
| 57.9
| 59.1
| 1.03 ± 0.01

| `tuned`
| 56.9 ± 0.4
| 56.2
| 57.8
| 1.00
|===
"""
ORG = """| Command  |  Mean [ms] |  Min [ms] |  Max [ms] |  Relative |
|--+--+--+--+--|
| =generic=  |  58.4 ± 0.3 |  57.9 |  59.1 |  1.03 ± 0.01 |
| =tuned=  |  56.9 ± 0.4 |  56.2 |  57.8 |  1.00 |
"""


@pytest.mark.parametrize("text", [ASCIIDOC, ORG], ids=["AsciiDoc", "Org"])
def test_the_tables_of_asciidoc_and_org_are_read_as_those_of_markdown(tmp_path: Path, text: str) -> None:
    assert judged(tmp_path, text, JudgeRequest(n="10"), "table.adoc") == ["tuned: Mean [ms]"]


def test_an_asciidoc_table_with_a_cell_too_few_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="line 15: fields: 4, in the header: 5"):
        judged(tmp_path, ASCIIDOC.replace("| 1.00\n", ""), JudgeRequest(n="10"))


TERSE = ";".join(
    ["3", "fio-3.33", "randread", "0", "0", "1048576", "349525", "87381", "3000", *["0"] * 37, "9", "9", "120", "7"]
)


def test_terse_output_of_fio_has_the_operations_of_both_directions() -> None:
    assert recognise(source(TERSE), JudgeRequest()).name == "fio"
    series = named(fio.read(source(TERSE)))
    assert {name: one.values for name, one in series.items()} == {
        "randread read": (87381.0,),
        "randread write": (120.0,),
    }


def test_terse_output_of_version_5_has_six_fields_more_for_each_direction() -> None:
    fields = TERSE.split(";")
    newer = ";".join(["5", *fields[1:46], *["3"] * 6, *fields[46:]])
    assert named(fio.read(source(newer)))["randread write"].values == (120.0,)


def test_a_job_of_fio_that_failed_is_left_out_of_terse_output() -> None:
    failed = TERSE.replace("randread;0;0;", "broken;0;5;")
    output = fio.read(source(f"{TERSE}\n{failed}\n"))
    assert output.notes == ("broken failed: left out",)
    assert len(output.series) == 2


GOOGLE_CSV = """\
name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,error_occurred,error_message
"BM_x/8",1000,100.1,99.1,ns,,1e6,,
"BM_x/16",1000,200.1,199.1,ns,,1e6,,
"BM_bad",0,0,0,,,,true,"no such file"
"BM_y_mean",3,50.0,49.0,us,,,,
"BM_y_stddev",3,1.0,1.0,us,,,,
"""
GOOGLE_TEXT = """Running ./b
-----------------------------------------------------
Benchmark           Time             CPU   Iterations
-----------------------------------------------------
BM_x/8          100.1 ns         99.1 ns      7000000 items_per_second=1M/s
BM_x/16         200.1 ns          199 ns      3500000
BM_y_mean        50.0 us         49.0 us            3
BM_y_stddev      1.00 us         1.00 us            3
"""


@pytest.mark.parametrize("text", [GOOGLE_CSV, GOOGLE_TEXT], ids=["CSV", "table"])
def test_benchmarks_of_google_benchmark_are_never_compared_with_each_other(text: str) -> None:
    assert recognise(source(text), JudgeRequest()).name == "google-benchmark"
    series = named(google_benchmark.read(source(text)))
    assert {name: one.values for name, one in series.items()} == {
        "BM_x/8": (100.1,),
        "BM_x/16": (200.1,),
        "BM_y": (50.0,),
    }
    assert (series["BM_y"].sd, series["BM_y"].n) == (0.02, 3)


CRITERION = """Benchmarking fib 20: Collecting 100 samples in estimated 5.0 s (192k iterations)
fib 20                  time:   [26.029 µs 26.251 µs 26.505 µs]
                        change: [-2.1% -1.0% +0.2%] (p = 0.09 > 0.05)
                        No change in performance detected.
Found 11 outliers among 100 measurements (11.00%)
a/very/long/name/of/a/benchmark
                        time:   [1.0000 ms 1.1000 ms 1.2000 ms]
"""


def test_what_criterion_prints_is_read_without_its_changes() -> None:
    series = named(criterion.read(source(CRITERION)))
    assert {name: one.values for name, one in series.items()} == {
        "fib 20": (26.251,),
        "a/very/long/name/of/a/benchmark": (1.1,),
    }
    assert series["fib 20"].n == 100
    assert series["fib 20"].error == pytest.approx((26.505 - 26.029) / 2 / 1.96 / 26.251, rel=1e-4)


def test_estimates_of_criterion_have_their_standard_error() -> None:
    estimate = {"point_estimate": 26251.0, "standard_error": 120.0}
    [series] = criterion.read(source(json.dumps({"mean": estimate, "median": estimate, "slope": None}))).series
    assert (series.values, series.unit) == ((26251.0,), "ns")
    assert series.error == pytest.approx(120 / 26251)


def schbench_report(seconds: int, latency: int) -> str:
    return f"""Wakeup Latencies percentiles (usec) runtime {seconds} (s) (1000 total samples)
\t  50.0th: 9          (400 samples)
\t* 99.0th: {latency}         (90 samples)
\t  min=1, max=4000
RPS percentiles (requests) runtime {seconds} (s) (30 total samples)
\t* 50.0th: 10040      (9 samples)
average rps: {latency * 10}.00
"""


def test_only_the_last_report_of_a_run_of_schbench_counts() -> None:
    runs = "".join(schbench_report(seconds, latency) for seconds, latency in ((10, 50), (20, 55), (10, 60), (20, 65)))
    series = named(schbench.read(source(runs)))
    assert {name: one.values for name, one in series.items()} == {
        "schbench Wakeup Latencies, 99th percentile": (55.0, 65.0),
        "schbench average": (550.0, 650.0),
    }
    assert [one.direction for one in series.values()] == ["lower", "higher"]


NETPERF = {
    "TCP REQUEST/RESPONSE": (
        """MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to localhost () port 0 AF_INET
Local /Remote
Socket Size   Request  Resp.   Elapsed  Trans.
Send   Recv   Size     Size    Time     Rate
bytes  Bytes  bytes    bytes   secs.    per sec

16384  131072 1        1       10.00    45678.12
16384  131072
""",
        45678.12,
        "transactions/s",
    ),
    "TCP STREAM": (
        """MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to localhost () port 0 AF_INET
Recv   Send    Send
Socket Socket  Message  Elapsed
Size   Size    Size     Time     Throughput
bytes  bytes   bytes    secs.    10^6bits/sec

131072  16384  16384    10.00    34567.89
""",
        34567.89,
        "Mb/s",
    ),
    "UDP STREAM": (
        """MIGRATED UDP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to localhost () port 0 AF_INET
Socket  Message  Elapsed      Messages
Size    Size     Time         Okay Errors   Throughput
bytes   bytes    secs            #      #   10^6bits/sec

212992   65507   10.00      123456      0    6470.12
212992           10.00      123400           6467.10
""",
        6467.1,
        "Mb/s",
    ),
}


@pytest.mark.parametrize("test", NETPERF)
def test_each_test_of_netperf_has_one_number(test: str) -> None:
    text, value, unit = NETPERF[test]
    [series] = netperf.read(source(text)).series
    assert (series.benchmark, series.values, series.unit) == (f"netperf {test}", (value,), unit)
    assert series.direction == "higher"


def test_mmtests_compares_kernels_with_the_deviations_of_its_own_rows() -> None:
    series = mmtests.read(read(str(DATA / "mmtests.txt"))).series
    assert [(one.variant, one.benchmark, one.values, one.direction) for one in series[:2]] == [
        ("6.12.0-vanilla", "hackbench-process-pipes 1", (0.745,), "lower"),
        ("6.13.0-patched", "hackbench-process-pipes 1", (0.712,), "lower"),
    ]
    assert series[0].sd == pytest.approx(0.015 / 0.745)
    assert series[2].sd is None


def test_a_rule_below_the_kernels_of_mmtests_is_no_part_of_their_names() -> None:
    text = (
        "              v6.11       v6.12\n            -------     -------\nHmean  1  101.2 (  0.00%)  99.1 ( -2.08%)\n"
    )
    assert [one.variant for one in mmtests.read(source(text)).series] == ["v6.11", "v6.12"]


def test_phoronix_csv_has_a_variant_for_each_identifier(tmp_path: Path) -> None:
    text = """My title

 ,,"6.12.1","6.13.0"
Processor,,EPYC 9654,EPYC 9654

 ,,"6.12.1","6.13.0"
"PostgreSQL - Clients: 50 (TPS)",HIB,12345,12545
"Build: defconfig (sec)",LIB,45.67,44.99
"""
    assert judged(tmp_path, text) == ["6.13.0: PostgreSQL - Clients: 50", "6.13.0: Build: defconfig"]


def test_means_and_deviations_by_variant_are_not_variants(tmp_path: Path) -> None:
    text = "test,unit,vanilla mean,vanilla sd,patched mean,patched sd\nread,us,12.5,0.3,12.1,0.2\n"
    assert judged(tmp_path, text, JudgeRequest(n="10")) == ["patched: read"]
    with pytest.raises(NoSize):
        judged(tmp_path, text)


def test_extremes_by_variant_are_left_out_with_a_note(tmp_path: Path) -> None:
    file = tmp_path / "file.csv"
    file.write_text("test,old,old_std,new,new_std,new_max\nread,12.5,0.3,12.1,0.2,14\nwrite,14.5,0.3,14,0.2,17\n")
    report = judge_files([str(file)], JudgeRequest(n="5"))
    assert {row.variant for row in report.comparisons} == {"new"}
    assert "not read, since they are made from other numbers, or count: new_max" in report.notices


def test_columns_of_runs_are_values_of_one_benchmark(tmp_path: Path) -> None:
    for heads in ("run1,run2,run3", "iteration 0,iteration 1,iteration 2", "Trial_1,Trial_2,Trial_3"):
        text = f"kernel,{heads},avg\n6.12,10.1,10.2,10.3,10.2\n6.13,9.9,9.8,9.7,9.8\n"
        assert judged(tmp_path, text) == ["6.13: value"], heads


@pytest.mark.parametrize("heads", ["1,2,3", "run2,run4,run8"])
def test_numbers_that_may_be_of_threads_are_not_runs(tmp_path: Path, heads: str) -> None:
    with pytest.raises(NoColumn, match="no column looks like the value"):
        judged(tmp_path, f"kernel,{heads}\n6.12,10.1,10.2,10.3\n6.13,9.9,9.8,9.7\n")


def test_runs_of_benchmarks_are_not_compared_with_each_other(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / f"{name}.csv").write_text("test,run1,run2\npipe,10.1,10.2\nfutex,20.1,20.2\n")
    report = judge_files([str(tmp_path / "old.csv"), str(tmp_path / "new.csv")], JudgeRequest())
    assert [(row.variant, row.benchmark) for row in report.comparisons] == [("new", "pipe"), ("new", "futex")]
    with pytest.raises(RunsInColumns, match="the columns run1, run2 look like runs of one measurement"):
        judged(tmp_path, "| test | run1 | run2 |\n|--|--|--|\n| pipe | 1 | 2 |\n", name="runs.md")


def test_the_delimiter_that_excel_is_told_is_not_a_column(tmp_path: Path) -> None:
    text = "sep=;\r\nKernel;Zeit [ms]\r\nalt;1.234,5\r\nalt;1.236,5\r\nneu;1.134,5\r\nneu;1.136,5\r\n"
    assert judged(tmp_path, text) == ["neu: Zeit [ms]"]


def test_lists_without_the_names_of_lkp_are_not_its_matrix() -> None:
    assert recognise(source('{"A": [1.1, 1.2], "B": [1.4, 1.5]}'), JudgeRequest()).name == "csv"


def test_cells_in_several_units_are_converted_to_one(tmp_path: Path) -> None:
    file = tmp_path / "file.csv"
    file.write_text("kernel,time\nA,10 ms\nA,0.0101 s\nA,10050 us\nB,9 ms\nB,9.1 ms\nB,9.05 ms\n")
    [row] = judge_files([str(file)], JudgeRequest()).comparisons
    assert row.baseline_value and row.variant_value
    assert row.variant_value / row.baseline_value == pytest.approx(9.05 / 10.05, rel=1e-3)


@pytest.mark.parametrize("cells", [("10 ms", "5 MB"), ("10 ms", "10")])
def test_cells_whose_units_cannot_be_converted_are_refused_with_both(tmp_path: Path, cells: tuple[str, str]) -> None:
    with pytest.raises(MixedUnits, match=r"values in '.*' and in '.*', which can't be converted"):
        judged(tmp_path, f"kernel,time\nA,{cells[0]}\nB,{cells[1]}\nB,9 ms\n")


def test_the_unit_in_the_name_of_a_row_is_that_of_its_values(tmp_path: Path) -> None:
    file = tmp_path / "file.csv"
    file.write_text("Metric;6.12.10;6.13.0\r\nLatenz (ms);1,23;1,19\r\nDurchsatz (MB/s);1.234,5;1.250,1\r\n")
    report = judge_files([str(file)], JudgeRequest())
    assert [(one.unit, one.direction) for one in report.benchmarks] == [("ms", "lower"), ("MB/s", "higher")]


def test_one_of_several_columns_in_units_is_not_the_value_by_itself(tmp_path: Path) -> None:
    with pytest.raises(NoColumn, match="no column looks like the value"):
        judged(tmp_path, "kernel,cycles/op,MiB/s\nA,340,3000\nB,350,3100\n")


def test_a_line_that_another_program_printed_is_not_a_header(tmp_path: Path) -> None:
    with pytest.raises(UnknownText):
        judged(tmp_path, "SomeMark 1.0 : 23456.789 / GCC12.2.0 -O2 / Heap\n")


ONE_LINE_EACH = {
    "cyclictest": (
        "cyclictest-before.txt",
        {
            "cyclictest average, thread 0": (3.0, 3.0),
            "cyclictest maximum, thread 0": (20.0, 20.0),
            "cyclictest average, thread 1": (4.0, 4.0),
            "cyclictest maximum, thread 1": (18.0, 18.0),
        },
        ("us", "lower"),
    ),
    "stream": (
        "stream-before.txt",
        {
            "stream Copy, 10000000 elements, 2 threads": (22345.6, 22345.6),
            "stream Triad, 10000000 elements, 2 threads": (18001.1, 18001.1),
        },
        ("MB/s", "higher"),
    ),
    "7z": (
        "7z-before.txt",
        {"7z compressing, 2 threads": (6785.0, 6785.0), "7z decompressing, 2 threads": (7269.0, 7269.0)},
        ("MIPS", "higher"),
    ),
    "coremark": ("coremark-before.txt", {"coremark": (32401.782098, 32401.782098)}, ("iterations/s", "higher")),
}


@pytest.mark.parametrize("program", ONE_LINE_EACH)
def test_each_run_in_a_file_of_a_program_is_a_value(program: str) -> None:
    file, values, (unit, direction) = ONE_LINE_EACH[program]
    text = (DATA / file).read_text()
    reader = recognise(source(text * 2), JudgeRequest())
    assert reader.name == program
    output = reader.read(source(text * 2), JudgeRequest())
    assert isinstance(output, ProgramOutput)
    assert {name: one.values for name, one in named(output).items()} == values
    assert {(one.unit, one.direction) for one in output.series} == {(unit, direction)}


def test_the_score_of_coremark_alone_is_read() -> None:
    text = "CoreMark 1.0 : 23456.789 / GCC12.2.0 -O2 / Heap\n"
    output = BY_NAME["coremark"].read(source(text), JudgeRequest())
    assert isinstance(output, ProgramOutput)
    assert named(output)["coremark"].values == (23456.789,)


def test_what_cyclictest_prints_while_it_runs_is_not_its_result() -> None:
    block = (DATA / "cyclictest-before.txt").read_text().partition("\n")[2]
    with pytest.raises(UnknownText) as caught:
        recognise(source(f"policy: fifo\n\n{block}\x1b[4A{block}"), JudgeRequest())
    assert "cyclictest" in caught.value.advice


DD = """1024+0 records in
1024+0 records out
1073741824 bytes (1.1 GB, 1.0 GiB) copied, 1.23456 s, 870 MB/s
900000000 bytes (900 MB, 858 MiB) copied, 1 s, 900 MB/s\r1024+0 records in
1024+0 records out
1073741824 bytes (1.1 GB, 1.0 GiB) copied, 1.19876 s, 896 MB/s
"""


def test_the_progress_of_dd_is_not_a_run() -> None:
    reader = recognise(source(DD), JudgeRequest())
    output = reader.read(source(DD), JudgeRequest())
    assert isinstance(output, ProgramOutput)
    [series] = output.series
    assert (series.benchmark, series.values) == ("dd, 1073741824 bytes", (1.23456, 1.19876))
    assert (series.unit, series.direction) == ("s", "lower")


def test_json_lines_are_a_list_of_records(tmp_path: Path) -> None:
    records = [{"kernel": kernel, "test": "pipe", "us": value} for kernel in ("old", "new") for value in (1.5, 1.6)]
    text = "\n\n".join(map(json.dumps, records))
    assert judged(tmp_path, text, name="runs.jsonl") == ["new: pipe"]


def test_a_line_of_json_lines_that_is_not_a_record_is_named() -> None:
    text = '{"kernel": "old", "us": 1}\n{"kernel": "old", "us": 2}\n{"kernel": "new", "us"\n'
    with pytest.raises(Broken, match="lines 1 to 2 are records of JSON Lines, and line 3 is not one"):
        recognise(source(text), JudgeRequest())


HISTOGRAM = """# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000\t000001
000001 000000\t000002
000002 004211\t003977
000003 005700\t005900
# Total: 000009911 000009880
# Min Latencies: 00002 00000
# Avg Latencies: 00003 00002
# Max Latencies: 00038 00024
# Histogram Overflows: 00000 00000
"""


def test_of_a_histogram_of_cyclictest_the_average_and_the_maximum_of_each_thread_are_read() -> None:
    lone = source(HISTOGRAM)
    output = recognise(lone, JudgeRequest()).read(lone, JudgeRequest())
    assert isinstance(output, ProgramOutput)
    assert {name: series.values for name, series in named(output).items()} == {
        "cyclictest average, thread 0": (3,),
        "cyclictest average, thread 1": (2,),
        "cyclictest maximum, thread 0": (38,),
        "cyclictest maximum, thread 1": (24,),
    }


def test_several_aligned_tables_in_one_file_are_read_as_one(tmp_path: Path) -> None:
    text = """Context switching, in microseconds
Benchmark        old      new
2p/0K            1.52     1.41

8p/16K           2.85     2.65

Memory
Benchmark        old      new
mmap latency     120      115
"""
    assert judged(tmp_path, text) == ["new: 2p/0K", "new: 8p/16K", "new: mmap latency"]


def test_two_tables_with_the_same_rows_are_not_pooled(tmp_path: Path) -> None:
    text = "threads: 1\nTest   old   new\npipe   1.5   1.4\nfork   90    88\n"
    with pytest.raises(TablesAlike, match="tables in lines 2 and 7 both have 'pipe' of 'old'"):
        judged(tmp_path, f"{text}\n{text.replace('1.5', '9.5')}")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Percentage served,Time in ms\n0,0.31\n50,1.1\n99,2.3\n", PercentilesInRows),  # ab -e
        ("Value  Percentile  TotalCount\n0.1  0.0  1\n1.2  0.5  300\n2.3  0.9  540\n", PercentilesInRows),  # wrk2
        ("latency_us,cdf\n1.5,0.25\n2.5,0.50\n9.5,1.00\n", PercentilesInRows),
        ("latency_us,count\n1,900\n2,400\n3,12\n", PercentilesInRows),
        ("MemTotal:       24600000 kB\nMemFree:        1000000 kB\nCached:         12300 kB\n", NoHeader),
        ("Throughput,Elapsed Time\n9800.5,10.00\n9700.1,10.00\n", SeveralValues),
        ("kB  reclen  write  read\n65536  4  890000  3200000\n65536  64  1890000  6200000\n", NoColumn),  # iozone
        ("[OVERALL], RunTime(ms), 10110\n[READ], Operations, 500000\n[READ], Latency(us), 95.2\n", NoHeader),  # YCSB
    ],
)
def test_a_table_that_holds_no_single_value_a_row_is_refused(tmp_path: Path, text: str, error: type[FileError]) -> None:
    files = [f"{name}={tmp_path / name}.txt" for name in ("old", "new")]
    for name in ("old", "new"):
        (tmp_path / f"{name}.txt").write_text(text)
    with pytest.raises(error):
        judge_files(files, JudgeRequest())


@pytest.mark.parametrize("rows", ["pipe,100%,108%\nfork,100%,97%\n", "pipe,1.00,1.08\nfork,1.00,0.97\n"])
def test_numbers_that_are_ratios_to_a_column_of_ones_are_refused(tmp_path: Path, rows: str) -> None:
    with pytest.raises(Normalised, match="every number of 'base' is 1"):
        judged(tmp_path, f"test,base,patched\n{rows}")


@pytest.mark.parametrize("sums", [("average",), ("average", "stdev", "min", "max")])
def test_an_average_below_the_runs_is_not_a_run(tmp_path: Path, sums: tuple[str, ...]) -> None:
    text = "run,old,new\n1,12.1,11.2\n2,12.2,11.1\n" + "".join(f"{name},12.2,11.2\n" for name in sums)
    with pytest.raises(RunsInRows, match="the rows of 'run' look like runs of one measurement"):
        judged(tmp_path, text, JudgeRequest(wide=True))


def test_rows_of_runs_are_values_where_each_column_is_a_variant(tmp_path: Path) -> None:
    text = "run,old,new\n" + "".join(f"{run},{12 + run / 10},{11 + run / 10}\n" for run in range(1, 7))
    assert judged(tmp_path, text, JudgeRequest(wide=True)) == ["new: value"]


def test_values_with_a_number_of_counts_each_stay_measurements(tmp_path: Path) -> None:
    text = "kernel,latency_us,count\nold,2.5,100\nold,1.5,90\nold,2.0,95\nnew,1.5,96\nnew,1.0,93\nnew,1.2,91\n"
    assert judged(tmp_path, text) == ["new: latency_us"]


def test_a_column_may_state_the_better_direction(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("kernel,score (higher is better)\nold,120\nold,121\nnew,130\nnew,131\n")
    [row] = judge_files([str(file)], JudgeRequest()).comparisons
    assert row.direction == "higher"


def test_a_command_that_names_every_column_is_no_advice(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("Core\tAvg_MHz\tBzy_MHz\tIRQ\tIPC\n0\t1500\t3500\t12\t1.2\n1\t1400\t3500\t13\t1.1\n")
    with pytest.raises(NoColumn) as raised:
        judge_files([str(tmp_path / "a")], JudgeRequest())
    assert "for example" not in raised.value.advice


@pytest.mark.parametrize(
    ("text", "benchmark", "value"),
    [
        (
            "sockperf: == version #3.10 ==\nsockperf: ====> avg-latency=11.858 (std-dev=1.543)\n"
            "sockperf: Summary: Latency is 11.858 usec\nsockperf: ---> <MAX> observation =  177.061\n",
            "sockperf average latency",
            11.858,
        ),
        (
            "dbench version 4.00\n\n   2      1234   411.22 MB/sec  warmup   1 sec  latency 2.123 ms\n\n"
            "Throughput 415.21 MB/sec  2 clients  2 procs  max_latency=5.123 ms\n",
            "dbench, 2 clients",
            415.21,
        ),
    ],
)
def test_what_sockperf_and_dbench_print_is_read_once(text: str, benchmark: str, value: float) -> None:
    lone = source(text)
    output = recognise(lone, JudgeRequest()).read(lone, JudgeRequest())
    assert isinstance(output, ProgramOutput)
    assert {name: series.values for name, series in named(output).items()} == {benchmark: (value,)}


def test_statistics_of_kernels_in_columns_are_not_kernels(tmp_path: Path) -> None:
    for header in ("test,6.12 median,6.12 p99,6.13 median,6.13 p99", "test,6.12,6.12 max,6.13,6.13 max"):
        assert judged(tmp_path, f"{header}\npipe,5.1,9.0,5.2,9.9\nfork,101,120,99,140\n") == [
            "6.13: pipe",
            "6.13: fork",
        ]


def test_rows_that_are_named_by_dates_are_not_benchmarks(tmp_path: Path) -> None:
    text = "date,6.12.1,6.13.0\n2026-11-01,10.1,9.8\n2026-11-02,10.2,9.9\n2026-11-03,10.0,9.7\n"
    with pytest.raises(MaybeWide, match=r"are 6\.12\.1, 6\.13\.0 variants"):
        judged(tmp_path, text)
    assert judged(tmp_path, text, JudgeRequest(wide=True)) == ["6.13.0: value"]


def test_a_column_without_a_name_is_not_a_variant(tmp_path: Path) -> None:
    with pytest.raises(NoHeading, match="line 1: a column of numbers has no name"):
        judged(tmp_path, "test,6.12.1,\npipe,5.1,5.2\nfork,101,99\n")
    with pytest.raises(NoHeading, match="line 1: a column of numbers has no name"):
        judged(tmp_path, "| test | 6.12.1 | |\n|---|---|---|\n| pipe | 5.1 | 5.2 |\n| fork | 101 | 99 |\n")


def test_a_mean_of_no_benchmark_has_no_row(tmp_path: Path) -> None:
    file = tmp_path / "file.csv"
    file.write_text("test,6.12.1,6.13.0\npipe,5.1,5.2\nfork,101,99\n")
    report = judge_files([str(file)], JudgeRequest())
    assert [row.name for row in table_rows(report, "6.13.0")] == ["pipe", "fork"]


def test_rows_that_are_numbers_of_threads_are_called_so(tmp_path: Path) -> None:
    text = "threads,stock,tuned\n1,100,110\n2,190,215\n4,350,420\n"
    assert judged(tmp_path, text) == ["tuned: threads 1", "tuned: threads 2", "tuned: threads 4"]


LKP = """compiler/kconfig/nr_task/tbox_group/test/testcase:
  gcc-12/x86_64-rhel-8.3/16/{host}/mmap1/will-it-scale

commit:
  8a5a1b2c3d ("mm: before")
  0d1e013fcf ("mm: after")

8a5a1b2c3d4e5f6a 0d1e013fcf3e1d1b5a8b5d1e9a1
---------------- ---------------------------
         %stddev     %change         %stddev
    {old} ±  2%     -15.5%     {new} ±  3%  will-it-scale.per_thread_ops
"""


def test_tables_of_two_machines_in_one_report_of_lkp_are_different_benchmarks(tmp_path: Path) -> None:
    text = LKP.format(host="skl-1", old=32099, new=27124) + "\n" + LKP.format(host="icl-2", old=42099, new=43124)
    assert judged(tmp_path, text, JudgeRequest(n="4")) == [
        "0d1e013fcf: will-it-scale.per_thread_ops, skl-1",
        "0d1e013fcf: will-it-scale.per_thread_ops, icl-2",
    ]


def test_comparisons_of_lkp_that_no_parameter_distinguishes_are_refused(tmp_path: Path) -> None:
    text = LKP.format(host="skl-1", old=32099, new=27124)
    with pytest.raises(Broken, match="several comparisons"):
        judged(tmp_path, text + text, JudgeRequest(n="4"))


def test_lists_under_names_of_kernels_are_not_lkp() -> None:
    text = json.dumps({"6.6": [12.3, 12.4], "6.12": [12.1, 12.0]})
    assert recognise(source(text), JudgeRequest()).name == "csv"


@pytest.mark.parametrize("text", [HYPERFINE, LKP.format(host="skl-1", old=32099, new=27124)])
def test_what_a_mail_quotes_is_read_as_what_was_quoted(tmp_path: Path, text: str) -> None:
    plain, quoted = tmp_path / "plain", tmp_path / "quoted"
    plain.write_text(text, encoding="utf-8")
    quoted.write_text(
        "On Monday, she wrote:\n" + "".join(f">> {line}\n" for line in text.splitlines()), encoding="utf-8"
    )
    assert read(str(quoted)).text == "On Monday, she wrote:\n" + text
    assert recognise(read(str(quoted)), JudgeRequest()) == recognise(read(str(plain)), JudgeRequest())


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("[ ID] Interval           Transfer     Bitrate\n[  5]   0.00-10.00  sec  2.19 GBytes  9.41 Gbits/sec", "text"),
        ("[  5]   0.00-10.00  sec  2.19 GBytes  9.41 Gbits/sec                  receiver", "text"),
        ("[    0.000000] Linux version 6.12.1", "text"),
        ("[2026-01-01 10:00:00] starting run 42", "text"),
        ("[12.3, 12.4]", "json"),
        ("[true]", "json"),
        ("[\n[1, 2]]", "json"),
        ("[]", "json"),
    ],
)
def test_a_bracket_begins_a_list_of_json_only_before_what_one_holds(text: str, form: str) -> None:
    assert source(text).form == form


def test_a_table_between_lines_of_a_log_is_read(tmp_path: Path) -> None:
    text = """[2026-01-01 10:00:00] INFO kernel 6.6 against 6.12

benchmark        6.6        6.12
pipe             12.3       12.1
fork             55.1       54.0

[2026-01-01 10:10:00] INFO done in 600 s
"""
    assert judged(tmp_path, text) == ["6.12: pipe", "6.12: fork"]


@pytest.mark.parametrize(
    "header",
    [
        "test,vanilla,sd,patched,sd",
        "test,vanilla,std,patched,std.1",
        "test,vanilla,stddev,patched,stddev2",
        "test,vanilla,±,patched,±",
    ],
)
def test_deviations_under_one_name_belong_to_the_columns_before_them(tmp_path: Path, header: str) -> None:
    text = f"{header}\npipe,12.3,0.1,12.1,0.2\nfork,55.1,0.5,54.0,0.4\n"
    file = tmp_path / "file.csv"
    file.write_text(text, encoding="utf-8")
    report = judge_files([str(file)], JudgeRequest(n="5"))
    assert [(row.variant, row.benchmark) for row in report.comparisons] == [("patched", "pipe"), ("patched", "fork")]
    assert report.columns["mean (sd) by variant"] == "vanilla, patched"
    assert all(row.estimate for row in report.comparisons)


def test_a_numbered_name_of_a_statistic_is_not_a_variant(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no column looks like the value"):
        judged(tmp_path, "test,mean1,sd1,mean2,sd2\npipe,12.3,0.1,12.1,0.2\nfork,55.1,0.5,54.0,0.4\n")


def test_rows_that_sum_up_kernels_are_not_kernels(tmp_path: Path) -> None:
    text = "kernel,hackbench_s\n6.6,12.3\n6.12,12.1\nAverage,12.2\nStdDev,0.1\n"
    assert judged(tmp_path, text) == ["6.12: hackbench_s"]
    markdown = "| kernel | hackbench (s) |\n|-|-|\n| 6.6 | 12.3 |\n| 6.12 | 12.1 |\n| Mean | 12.2 |\n"
    assert judged(tmp_path, markdown, name="file.md") == ["6.12: hackbench (s)"]


def test_the_total_of_a_long_table_is_not_a_benchmark(tmp_path: Path) -> None:
    rows = "kernel,test,seconds\n6.6,a,12.3\n6.6,total,17.4\n6.12,a,12.1\n6.12,total,17.1\n"
    assert judged(tmp_path, rows) == ["6.12: a"]
    only = "kernel,test,seconds\n6.6,total,17.4\n6.12,total,17.1\n"
    assert judged(tmp_path, only) == ["6.12: total"]


def test_numbers_of_which_one_kernel_has_only_100_are_ratios(tmp_path: Path) -> None:
    with pytest.raises(Normalised, match=r"every number of '6.6' is 100"):
        judged(tmp_path, "bench,6.6,6.12\na,100,102\nb,100,99\n")


def test_a_measured_time_above_a_column_is_not_its_name(tmp_path: Path) -> None:
    text = "Ran in      12.34 secs   lap\nuser time   10.12 secs   512.00 us\nsys time     1.23 secs   345.00 us\n"
    with pytest.raises(NoHeader):
        judged(tmp_path, text)


def test_arrows_behind_names_say_which_direction_is_better(tmp_path: Path) -> None:
    file = tmp_path / "file.md"
    file.write_text("| test | 6.6 | 6.12 |\n|-|-|-|\n| score ↑ | 60 | 61 |\n| boot (↓) | 12 | 11 |\n", encoding="utf-8")
    report = judge_files([str(file)], JudgeRequest())
    assert [row.direction for row in report.benchmarks] == ["higher", "lower"]


def test_a_scale_before_a_unit_and_a_mark_behind_a_winner_are_not_parts_of_the_unit(tmp_path: Path) -> None:
    file = tmp_path / "file.md"
    rows = "| ops | 1.25 M ops/s | 1.3M ops/s ✅ |\n| boot | 1 min 2.5 s | 58.1 s* |\n"
    file.write_text(f"| test | 6.6 | 6.12 |\n|-|-|-|\n{rows}", encoding="utf-8")
    report = judge_files([str(file)], JudgeRequest())
    assert [(row.unit, row.direction) for row in report.benchmarks] == [("ops/s", "higher"), ("s", "lower")]
    assert [row.baseline_value for row in report.comparisons] == pytest.approx([1.25e6, 62.5])


def test_a_number_that_is_only_a_bound_is_refused_by_its_cell(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"line 3, column '6.6': '~12.3' is not a positive number"):
        judged(tmp_path, "| test | 6.6 | 6.12 |\n|-|-|-|\n| a | ~12.3 | 12.1 |\n| b | <1 | 1.1 |\n", name="file.md")


def test_what_r_prints_of_a_data_frame_has_row_names_without_a_heading(tmp_path: Path) -> None:
    text = "  kernel seconds\n1    6.6    12.3\n2    6.6    12.4\n3   6.12    12.1\n4   6.12    12.0\n"
    assert judged(tmp_path, text, name="file.txt") == ["6.12: seconds"]


@pytest.mark.parametrize("column", ["Kernel Version", "commit", "OS", "scheduler", "governor", "uname"])
def test_columns_of_what_people_compare_are_variants(tmp_path: Path, column: str) -> None:
    assert judged(tmp_path, f"{column},Time (s)\nold,12.3\nold,12.4\nnew,12.1\nnew,12.0\n") == ["new: Time (s)"]


def test_a_column_of_timestamps_is_not_offered_as_the_value(tmp_path: Path) -> None:
    text = "ts,kernel,ops\n1704100000,6.6,1230\n1704100010,6.6,1240\n1704100020,6.12,1330\n1704100030,6.12,1340\n"
    assert judged(tmp_path, text) == ["6.12: ops"]


KERNELS = ["6.12: pipe", "6.12: fork"]
DRAWN = """
┌──────┬─────────┬─────────┐
│ Test │ 6.6     │ 6.12    │
├──────┼─────────┼─────────┤
│ pipe │ 12.3 ms │ 12.1 ms │
│ fork │ 55 ms   │ 54 ms   │
└──────┴─────────┴─────────┘
"""
PSQL = """ Test │   6.6   │  6.12
──────┼─────────┼─────────
 pipe │ 12.3 ms │ 12.1 ms
 fork │ 55 ms   │ 54 ms
(2 rows)
"""
JIRA = """h2. Results
||Test||6.6||6.12||Delta||
|pipe|12.3 ms|12.1 ms|-1.6%|
|fork|55 ms|54 ms|-1.8%|
"""
HTML = """<html><body><h1>Results</h1>
<table border=1><tr><th>Test</th><th>6.6</th><th><b>6.12</b></th></tr>
<TR><td>pipe</td><td>12.3&nbsp;ms</td><td>12.1 ms</td></TR>
<tr><td>fork<td>55 ms<td>54 ms</tr></table>
</body></html>
"""


@pytest.mark.parametrize("text", [DRAWN, PSQL, JIRA, HTML])
def test_tables_of_other_markup_are_read_as_those_of_markdown(tmp_path: Path, text: str) -> None:
    assert judged(tmp_path, text, name="file.txt") == KERNELS


def test_a_fault_in_a_table_of_html_or_jira_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"line 3, column '6.6': '~12' is not a positive number"):
        judged(tmp_path, HTML.replace("12.3&nbsp;ms", "~12"), name="file.html")
    with pytest.raises(FileError, match=r"line 4, column '6.12': '~54' is not a positive number"):
        judged(tmp_path, JIRA.replace("54 ms", "~54"))


def test_cells_that_span_several_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpannedCells, match="line 3: cells: 2, in the header of the table: 3"):
        judged(tmp_path, HTML.replace("<td>12.1 ms</td>", "").replace("<td>12.3", "<td colspan=2>12.3"))


def test_a_directory_is_refused_with_the_names_of_its_files(tmp_path: Path) -> None:
    for name in ("run1.txt", "run2.txt", "run3.txt"):
        (tmp_path / name).write_text("12.3\n", encoding="utf-8")
    with pytest.raises(ADirectory, match="is a directory") as caught:
        read(str(tmp_path))
    assert f"{tmp_path.name}={tmp_path}/run1.txt" in caught.value.advice


def test_a_comparison_of_a_mail_about_the_scheduler_has_ratios_and_their_variation() -> None:
    found = pct_imp.read(read(str(DATA / "pct-imp.txt")))
    rows = {(one.benchmark, one.variant): [one.values[0], one.sd, one.direction] for one in found.series}
    assert rows["hackbench 1-groups", "tip"] == [1.0, pytest.approx(0.0208), "lower"]
    # not 0.99, which is rounded
    assert rows["hackbench 1-groups", "patched"] == [pytest.approx(1 - 0.0084), pytest.approx(0.0286), "lower"]
    assert rows["tbench 2", "patched"] == [pytest.approx(1 - 0.0304), pytest.approx(0.0061), "higher"]
    assert len(rows) == 8
    assert any("schbench (Median)" in note for note in found.notes)


def test_an_improvement_that_does_not_fit_its_ratio_is_not_used() -> None:
    head = "Test : x\nInterpretation: Lower is better\nCase:  tip[pct imp](CV)   a b[pct imp](CV)\n"
    [_, other] = pct_imp.read(source(f"{head} 1   1.00 [ 0.00]( 1.00)   0.80 [25.00]( 1.00)\n")).series
    assert (other.variant, other.values, other.step) == ("a b", (0.8,), 0.01)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("tip[pct imp](CV)\n 1   1.00 [ -0.00]( 2.08)\n", "only tip, as ratios to itself"),
        ("tip[pct imp](CV)\n 1   1.00 [ -0.00]( 2.08)  0.99 [ 1.00]( 2.08)\n", "line 2 has 2 values, and 1 names"),
        ("Statistic : Median\nCase: tip[pct imp](CV)\n 1   0.98 [ 2.00]( 2.08)\n", "none of its tables is of means"),
        ("tip[pct imp](CV)\n", "it has no row of values"),
    ],
)
def test_ratios_that_compare_nothing_are_refused(rows: str, why: str) -> None:
    with pytest.raises(Broken, match=why):
        pct_imp.read(source(rows))
