"""Programs that people time kernels with, in the forms that they paste: cut, after other output, in other units."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdyno.measure.readers.errors import Broken, FileError, MixedUnits, SummaryOfResults
from kdyno.measure.readers.formats import fio
from kdyno.measure.readers.formats.registry import BY_NAME, recognise
from kdyno.measure.readers.readings import ONE_PROCESS, FileSeries, ProgramOutput
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.source import FileSource, read

DATA = Path(__file__).parents[2] / "data" / "foreign"


def source(text: str) -> FileSource:
    return FileSource(shown="file.txt", name="file", data=text.encode())


def named(output: ProgramOutput) -> dict[str, FileSeries]:
    return {series.benchmark: series for series in output.series}


FISH = """
________________________________________________________
Executed in   {real} secs    fish           external
   usr time   10.12 secs  512.00 micros   10.12 secs
   sys time  345.00 millis  345.00 micros    0.34 secs
"""


def test_what_fish_prints_of_a_time_is_read_without_its_own_part(tmp_path: Path) -> None:
    file = tmp_path / "time.txt"
    file.write_text(FISH.format(real="12.34"), encoding="utf-8")
    output = BY_NAME["time"].read(read(str(file)), JudgeRequest())
    assert isinstance(output, ProgramOutput)
    assert {name: (one.values, one.unit) for name, one in named(output).items()} == {
        "time real": ((12.34,), "s"),
        "time user": ((10.12,), "s"),
        "time sys": ((345.0,), "ms"),
    }


def test_numbers_in_units_that_convert_are_one_series() -> None:
    output = BY_NAME["numbers"].read(source("998 us\n1.02 ms\n"), JudgeRequest())
    assert isinstance(output, ProgramOutput)
    assert (output.series[0].values, output.series[0].unit) == ((998.0, 1020.0), "us")
    with pytest.raises(MixedUnits):
        BY_NAME["numbers"].read(source("998 us\n1.02 MB\n"), JudgeRequest())


def test_an_infinite_number_among_others_is_named_by_its_line() -> None:
    text = source("12.3\ninf\n")
    assert recognise(text, JudgeRequest()).name == "numbers"
    with pytest.raises(FileError, match="line 2, column 'value': 'inf' is not a positive number"):
        BY_NAME["numbers"].read(text, JudgeRequest())


def test_counts_below_what_the_program_itself_printed_are_perfs() -> None:
    counts = "1.79,msec,task-clock,1791568,100.00,0.9,CPUs utilized\n"
    for above in ("make: warning: clock skew\n", ",,,,,35.1,tma_retiring\n", "done, in 3 s\n"):
        assert recognise(source(above + counts), JudgeRequest()).name == "perf"


def test_a_job_of_fio_without_the_banner_above_it_is_fios() -> None:
    text = "seq: (groupid=0, jobs=1): err= 0: pid=12: Mon Jan  1 10:00:00 2026\n  read: IOPS=316k, BW=1234MiB/s\n"
    assert recognise(source(text), JudgeRequest()).name == "fio"
    assert named(fio.read(source(text)))["seq read"].values == (316000.0,)


@pytest.mark.parametrize(
    ("form", "benchmark", "values", "unit"),
    [
        ("memtier", "memtier Gets", (135668.0,), "ops/s"),
        ("kcbench", "kcbench -j 32, Linux 6.6.0", (43.33, 43.36), "s"),
        ("kernbench", "kernbench Optimal load -j 16, elapsed time", (46.123,), "s"),
    ],
)
def test_the_measurements_of_a_program_are_read(
    form: str, benchmark: str, values: tuple[float, ...], unit: str
) -> None:
    text = read(str(DATA / f"{form}-before.txt"))
    assert recognise(text, JudgeRequest()).name == form
    output = BY_NAME[form].read(text, JudgeRequest())
    assert isinstance(output, ProgramOutput)
    assert (named(output)[benchmark].values, named(output)[benchmark].unit) == (values, unit)


def test_jmh_counts_each_fork_once_and_a_single_fork_by_its_iterations() -> None:
    text = (DATA / "jmh-before.json").read_text()
    output = BY_NAME["jmh"].read(source(text), JudgeRequest())
    assert isinstance(output, ProgramOutput)
    rate, time = output.series
    assert (rate.values, rate.unit, rate.direction) == ((1204.9, 1190.2, 1209.3), "ops/ms", "higher")
    assert (time.benchmark, time.direction) == ("org.example.Pipe.write (size=4096)", "lower")
    document = json.loads(text)[:1]
    document[0]["primaryMetric"]["rawData"] = document[0]["primaryMetric"]["rawData"][:1]
    output = BY_NAME["jmh"].read(source(json.dumps(document)), JudgeRequest())
    assert isinstance(output, ProgramOutput)
    assert output.series[0].values == (1200.1, 1205.2, 1204.9) and output.notes == (ONE_PROCESS,)
    document[0]["primaryMetric"]["rawData"] = [["fast"]]
    with pytest.raises(Broken):
        BY_NAME["jmh"].read(source(json.dumps(document)), JudgeRequest())


def test_will_it_scale_has_a_benchmark_for_each_number_of_processes_and_threads() -> None:
    output = BY_NAME["will-it-scale"].read(read(str(DATA / "will-it-scale-before.csv")), JudgeRequest())
    assert isinstance(output, ProgramOutput)
    rates = {one.benchmark: one.values for one in output.series}
    assert rates == {
        "processes, 1": (1214305.0,),
        "threads, 1": (1187220.0,),
        "processes, 2": (2310330.0,),
        "threads, 2": (1980101.0,),
    }


def test_kernbench_has_deviations_and_no_number_of_runs() -> None:
    output = BY_NAME["kernbench"].read(read(str(DATA / "kernbench-before.txt")), JudgeRequest())
    assert isinstance(output, ProgramOutput)
    assert output.series[0].sd == pytest.approx(0.3456 / 46.123)
    assert output.series[0].n is None


def test_perf_bench_numa_is_read_by_its_total_speed() -> None:
    text = """ # Running 'numa/mem' benchmark:

 RAM-bw-local,                            5.012, secs,           runtime-max/thread
 RAM-bw-local,                           20.123, GB/sec,         thread-speed
 RAM-bw-local,                           40.246, GB/sec,         total-speed
"""
    output = BY_NAME["perf-bench"].read(source(text), JudgeRequest())
    assert isinstance(output, ProgramOutput)
    assert [one.values for one in output.series] == [(40.246,)]


PHORONIX = """    Linux 6.6 against 6.7

    Timed Linux Kernel Compilation 6.1
    Build: defconfig
    Seconds < Lower Is Better
    6.6.10 . 45.67 |=====================================================
    6.7.0  . 44.99 |====================================================

    PostgreSQL 15
        Scaling Factor: 100 - Mode: Read Only
        TPS > Higher Is Better
        6.6.10 ... 812345 |===================================================
        6.7.0 .... 823456 |=====================================================
"""


def test_bars_of_phoronix_as_text_are_read_with_their_direction() -> None:
    assert recognise(source(PHORONIX), JudgeRequest()).name == "phoronix"
    output = BY_NAME["phoronix"].read(source(PHORONIX), JudgeRequest())
    assert isinstance(output, ProgramOutput)
    assert [(one.benchmark, one.variant, one.values[0], one.direction) for one in output.series] == [
        ("Timed Linux Kernel Compilation 6.1, Build: defconfig", "6.6.10", 45.67, "lower"),
        ("Timed Linux Kernel Compilation 6.1, Build: defconfig", "6.7.0", 44.99, "lower"),
        ("PostgreSQL 15, Scaling Factor: 100 - Mode: Read Only", "6.6.10", 812345.0, "higher"),
        ("PostgreSQL 15, Scaling Factor: 100 - Mode: Read Only", "6.7.0", 823456.0, "higher"),
    ]
    assert [one.unit for one in output.series] == ["s", "s", "transactions/s", "transactions/s"]


def test_the_summary_of_lmbench_is_refused_with_the_files_to_judge() -> None:
    text = """
                 L M B E N C H  3 . 0   S U M M A R Y
                 ------------------------------------
Processor, Processes - times in microseconds - smaller is better
------------------------------------------------------------------------------
Host                 OS  Mhz null null      open slct sig  sig  fork exec sh
                             call  I/O stat clos TCP  inst hndl proc proc proc
--------- ------------- ---- ---- ---- ---- ---- ---- ---- ---- ---- ---- ----
k66       Linux 6.6.0   3400 0.10 0.15 0.53 1.15 2.20 0.15 0.90 123. 456. 1023
"""
    with pytest.raises(SummaryOfResults, match=r"file\.txt is lmbench's summary") as caught:
        recognise(source(text), JudgeRequest())
    assert "before=results/" in caught.value.advice
