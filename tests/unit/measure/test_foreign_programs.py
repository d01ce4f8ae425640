"""Output of benchmark programs, most of it real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdyno.base.errors import UserError
from kdyno.judge.foreign.gathered import Gathered
from kdyno.judge.stats.observations import ReplicateSample, Summary
from kdyno.judge.verdicts import of_files
from kdyno.measure.readers import formats, json_values
from kdyno.measure.readers.errors import Broken, CommaTwice, Intervals, MixedUnits, NoSize, NothingThere, UnknownForm
from kdyno.measure.readers.formats import hyperfine, lmbench, perf_stat, pyperf, stress_ng
from kdyno.measure.readers.formats.printed_programs import PROGRAMS
from kdyno.measure.readers.formats.registry import BY_NAME, READERS, recognise
from kdyno.measure.readers.readings import ProgramOutput
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.source import FileSource, read

DATA = Path(__file__).parents[2] / "data" / "foreign"


def source(text: str, name: str = "file") -> FileSource:
    return FileSource(shown=f"{name}.txt", name=name, data=text.encode())


def of(output: ProgramOutput, benchmark: str) -> tuple[float, ...]:
    [values] = (series.values for series in output.series if series.benchmark == benchmark)
    return values


def gather(sources: list[FileSource], name: str, request: JudgeRequest | None = None) -> Gathered:
    return of_files.gather(sources, BY_NAME[name], request or JudgeRequest())


def test_every_reader_has_its_row_and_its_name_in_the_documents() -> None:
    modules = {path.stem for path in Path(formats.__path__[0]).glob("*.py")} - {
        "__init__",
        "registry",
        "printed",
        "printed_programs",
        "perf_counts",
    }
    assert len(BY_NAME) == len(READERS) == len(modules) + len(PROGRAMS)
    text = (DATA.parents[2] / "docs" / "judge.md").read_text(encoding="utf-8")
    assert [name for name in BY_NAME if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    ("file", "form"),
    [
        ("hyperfine-one.json", "hyperfine"),
        ("pyperf-before.json", "pyperf"),
        ("pyperf-calibrated.json", "pyperf"),
        ("stress-before.txt", "stress-ng"),
        ("stress-before.yaml", "stress-ng"),
        ("perf-r-before.csv", "perf"),
        ("perf-before-1.csv", "perf"),
        ("lmbench-before-1.txt", "lmbench"),
        ("perf-j-before.json", "perf"),
        ("perf-j-r.json", "perf"),
        ("hyperfine-means-before.csv", "hyperfine"),
        ("criterion-before.csv", "criterion"),
        ("google-before.json", "google-benchmark"),
        ("google-means-before.json", "google-benchmark"),
        ("pgbench-before.txt", "pgbench"),
        ("pgbench-progress.txt", "pgbench"),
        ("phoronix.xml", "phoronix"),
        ("rustc-perf-before.txt", "rustc-perf"),
        ("rustc-perf.json", "rustc-perf"),
        ("compiler_patch.csv", "table"),
        ("compiler_patch.md", "table"),
    ],
)
def test_a_format_is_known_by_its_beginning(file: str, form: str) -> None:
    assert recognise(read(str(DATA / file)), JudgeRequest()).name == form


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", '{"benchmarks": []}', '[{"kernel": "a", "wall": [1.5]}]'])
def test_json_of_no_program_is_refused_with_what_to_make_of_it(text: str) -> None:
    with pytest.raises(
        UnknownForm, match="is JSON, but not in the form of fio or iperf3 or perf or hyperfine or pyperf"
    ):
        recognise(source(text), JudgeRequest())


def test_what_unknown_json_has_stands_in_the_hint() -> None:
    with pytest.raises(UnknownForm) as caught:
        recognise(source('[{"kernel": "a", "wall": [1.5]}]'), JudgeRequest())
    assert caught.value.advice.endswith("columns variant, benchmark and value, from what it has: kernel, wall")


def test_json_that_breaks_off_is_refused() -> None:
    with pytest.raises(Broken, match="can't be read as JSON"):
        recognise(source('{"results": ['), JudgeRequest())


def test_hyperfine_s_times_are_read_by_command() -> None:
    document = json.loads((DATA / "hyperfine-one.json").read_text())
    parsed = hyperfine.read(read(str(DATA / "hyperfine-one.json")))
    assert [one_series.command for one_series in parsed.series] == [result["command"] for result in document["results"]]
    assert parsed.series[0].values == tuple(document["results"][0]["times"])
    assert parsed.series[0].unit == "s"


def test_runs_of_hyperfine_that_failed_are_left_out_and_said() -> None:
    text = '{"results": [{"command": "make", "times": [1.0, 0.1, 1.2], "exit_codes": [0, 2, 0]}]}'
    parsed = hyperfine.read(source(text))
    assert parsed.series[0].values == (1.0, 1.2)
    assert parsed.notes == ("1 of 3 runs of make failed: left out",)


@pytest.mark.parametrize(
    "text",
    [
        '{"results": [{"times": [1]}]}',
        '{"results": [{"command": "a", "times": null}]}',
        '{"results": [{"command": "a", "times": ["x"]}]}',
    ],
)
def test_broken_hyperfine_json_is_a_user_error(text: str) -> None:
    with pytest.raises(Broken):
        hyperfine.read(source(text))


def test_pyperf_counts_a_process_once_and_leaves_warmups_and_calibration_out() -> None:
    document = json.loads((DATA / "pyperf-calibrated.json").read_text())
    runs = document["benchmarks"][0]["runs"]
    assert "values" not in runs[0]
    parsed = pyperf.read(read(str(DATA / "pyperf-calibrated.json")))
    assert len(of(parsed, "lenlist")) == len(runs) - 1
    first = sorted(runs[1]["values"])
    assert of(parsed, "lenlist")[0] == pytest.approx((first[0] + first[1]) / 2)


def test_pyperf_takes_the_name_from_wherever_it_stands() -> None:
    text = '{"metadata": {"name": "x", "unit": "byte"}, "benchmarks": [{"runs": [{"values": [2, 4]}]}]}'
    [series] = pyperf.read(source(text)).series
    assert (series.benchmark, series.unit, series.values) == ("x", "B", (3.0,))


def test_stress_ng_s_lines_are_read_run_after_run() -> None:
    parsed = stress_ng.read(read(str(DATA / "stress-before.txt")))
    assert len(of(parsed, "pipe")) == 3
    assert of(parsed, "pipe")[0] == 86441.28
    assert of(parsed, "get")[0] == 408.71
    assert {one_series.direction for one_series in parsed.series} == {"higher"}


def test_stress_ng_s_yaml_says_what_its_lines_say() -> None:
    parsed = stress_ng.read(read(str(DATA / "stress-before.yaml")))
    assert [one_series.benchmark for one_series in parsed.series] == ["pipe", "get"]
    assert all(len(one_series.values) == 1 and one_series.unit == "bogo ops/s" for one_series in parsed.series)


def test_perf_s_standard_error_is_kept_and_what_was_not_counted_is_said() -> None:
    parsed = perf_stat.read(read(str(DATA / "perf-r-before.csv")))
    [clock] = (one_series for one_series in parsed.series if one_series.benchmark == "task-clock")
    assert (clock.values, clock.unit) == ((1.79,), "ms")
    assert clock.error == pytest.approx(0.1408)
    assert "cycles was not supported: left out" in parsed.notes
    assert any("context-switches is 0" in note for note in parsed.notes)


def test_perf_s_multiplexing_warns() -> None:
    parsed = perf_stat.read(source("12345,,cycles,1000000,42.50,1.2,GHz\n"))
    assert parsed.notes == ("cycles was counted 42.50 % of the time and scaled up (multiplexing)",)


def test_event_names_of_perf_may_hold_the_separator() -> None:
    parsed = perf_stat.read(source("77,,cpu/event=0x3c,umask=0x1/u,1.50%,1000000,100.00,,\n"))
    [series] = parsed.series
    assert (series.benchmark, series.values, series.error) == ("cpu/event=0x3c,umask=0x1/u", (77.0,), 0.015)


def test_perf_s_counts_of_single_cpus_are_benchmarks_of_their_own() -> None:
    lines = ("CPU0,10.5,msec,cpu-clock", "CPU1,11.5,msec,cpu-clock", "S0,2,22.0,msec,cpu-clock")
    text = "".join(f"{line},1000,100.00,,\n" for line in lines)
    assert [one_series.benchmark for one_series in perf_stat.read(source(text)).series] == [
        "cpu-clock, CPU0",
        "cpu-clock, CPU1",
        "cpu-clock, S0",
    ]


def test_decimal_commas_between_commas_are_refused_with_the_ways_out() -> None:
    with pytest.raises(CommaTwice, match=r"perf-comma\.csv, line 3: commas stand between the fields") as caught:
        perf_stat.read(read(str(DATA / "perf-comma.csv")))
    assert "perf stat -x';'" in caught.value.advice
    assert "LC_ALL=C" in caught.value.advice


@pytest.mark.parametrize(
    "line",
    [
        "12,34,msec,task-clock,12340000,100,00,0,987,CPUs utilized",
        "12,34,msec,task-clock,1,25%,12340000,100,00,0,987,CPUs utilized",
        "1234567,,cycles,12340000,100,00,1,001,GHz",
        "1234567,,cycles,12340000,100,00,,",
        "1234567,,cycles,12340000,62,50",
        "CPU0,12,34,msec,cpu-clock,12340000,100,00,,",
        "S0,2,12,34,msec,cpu-clock,12340000,100,00,,",
        "1,000123456,12,34,msec,task-clock,12340000,100,00,,",
        "77,,cpu/event=0x3c,umask=0x1/u,1000000,100,00,,",
        "<not supported>,,cycles,0,100,00,,",
    ],
)
def test_no_line_with_decimal_commas_between_commas_is_read(line: str) -> None:
    assert recognise(source(f"{line}\n"), JudgeRequest()).name == "perf"
    with pytest.raises(CommaTwice):
        perf_stat.read(source(f"{line}\n"))


@pytest.mark.parametrize("metric", ["", "0.987,CPUs utilized", "nan,of all branches", "12,K/sec", "0.0"])
def test_lines_without_decimal_commas_are_still_read(metric: str) -> None:
    [series] = perf_stat.read(source(f"12.5,msec,task-clock,1.50%,12340000,100.00,{metric}\n")).series
    assert (series.benchmark, series.unit, series.values, series.error) == ("task-clock", "ms", (12.5,), 0.015)


def test_decimal_commas_between_semicolons_are_read() -> None:
    file = read(str(DATA / "perf-semicolon-before.csv"))
    assert recognise(file, JudgeRequest()).name == "perf"
    parsed = perf_stat.read(file)
    assert of(parsed, "task-clock") == (22.71,)
    assert of(parsed, "cycles") == (2234567,)
    assert parsed.notes == (
        "cycles was counted 62.50 % of the time and scaled up (multiplexing)",
        "stalled-cycles-frontend was not supported: left out",
    )


@pytest.mark.parametrize(
    "text", ['{"counter-value" : "12,5", "event" : "cycles", "pcnt-running" : 100,00}', '{"counter-value" : ']
)
def test_json_of_perf_that_is_none_is_refused_without_python_s_words(text: str) -> None:
    with pytest.raises(Broken, match=r"line 1: invalid JSON from line 1, column \d+ on"):
        perf_stat.read(source(text))


def test_intervals_of_perf_are_refused() -> None:
    with pytest.raises(Intervals, match="intervals of perf stat -I"):
        perf_stat.read(source("     0.100638649;1.92;msec;task-clock;1917264;100.00;0.019;CPUs utilized\n"))


def test_lmbench_s_lines_and_tables_are_read() -> None:
    parsed = lmbench.read(read(str(DATA / "lmbench-before-1.txt")))
    units = {one_series.benchmark: (one_series.unit, one_series.direction) for one_series in parsed.series}
    assert units["Simple syscall"] == ("us", "lower")
    assert units["Pipe bandwidth"] == ("MB/s", "higher")
    assert units["File write bandwidth"] == ("KB/s", "higher")
    assert units["Pagefaults"] == ("us", "lower")
    assert units["integer bit"] == ("ns", "lower")
    assert units["context switch, 64k, 2 processes"] == ("us", "lower")
    assert units["memory latency, stride 128, 0.00049 MB"] == ("ns", "lower")
    assert units["mmap, 1.048576 MB"] == ("us", "lower")
    assert units["file create, 0k"] == ("ops/s", "higher")
    assert units["Socket bandwidth using localhost, 10.485760 MB"] == ("MB/s", "higher")
    assert units["Memory bzero bandwidth, 0.000512 MB"] == ("MB/s", "higher")
    assert len(units) == 26
    assert parsed.notes == ("int64 mul is -0.02, and ratios need positive numbers: left out",)


def test_a_lone_table_of_lat_ctx_is_lmbench() -> None:
    text = '"size=0k ovr=1.09\n8 1.80\n'
    assert recognise(source(text), JudgeRequest()).name == "lmbench"
    assert of(lmbench.read(source(text)), "context switch, 0k, 8 processes") == (1.80,)


def test_commands_of_a_lone_hyperfine_file_are_the_variants() -> None:
    gathered = gather([read(str(DATA / "hyperfine-one.json"))], "hyperfine")
    [observed] = gathered.observations
    assert tuple(observed.groups) == ("find /usr/share/doc", "seq 100000")
    assert (observed.unit, observed.direction) == ("ms", "lower")


def test_of_several_hyperfine_files_each_is_a_variant() -> None:
    files = [read(str(DATA / f"hyperfine-{name}.json")) for name in ("before", "after")]
    gathered = gather(files, "hyperfine")
    assert [observation.benchmark for observation in gathered.observations] == ["ls /", "seq 1000"]
    assert gathered.variants == ("hyperfine-before", "hyperfine-after")


def test_several_files_of_a_name_are_replicates() -> None:
    files = [read(f"{name}={DATA}/lmbench-{name}-{number}.txt") for name in ("before", "after") for number in (1, 2, 3)]
    gathered = gather(files, "lmbench")
    assert gathered.variants == ("before", "after")
    [syscall] = (observation for observation in gathered.observations if observation.benchmark == "Simple syscall")
    assert all(isinstance(group, ReplicateSample) and len(group.values) == 3 for group in syscall.groups.values())
    assert "each file counts once for its variant, with the median of its values" in gathered.notes
    assert gathered.boots == "nothing says whether each file is another boot"


def test_of_several_files_of_a_variant_each_is_a_boot_and_the_same_in_all_benchmarks() -> None:
    files = [read(f"{name}={DATA}/lmbench-{name}-{number}.txt") for name in ("before", "after") for number in (1, 2, 3)]
    gathered = gather(files, "lmbench")
    for observed in gathered.observations:
        groups = [observed.sample(name) for name in ("before", "after")]
        labels = [group.boots.tolist() for group in groups if group and group.boots is not None]
        assert labels == [[0, 1, 2], [3, 4, 5]]


def test_files_that_are_taken_together_are_named() -> None:
    names = ("before=lmbench-before-1", "before=lmbench-before-2", "after=lmbench-after-1")
    files = [read(f"{variant}={DATA}/{name}.txt") for variant, _, name in (name.partition("=") for name in names)]
    gathered = gather(files, "lmbench")
    assert any(note.startswith("all values of the files of before are taken together") for note in gathered.notes)
    equal = [read(f"{name}={DATA}/lmbench-{name}-{number}.txt") for name in ("before", "after") for number in (1, 2)]
    assert not any("taken together" in note for note in gather(equal, "lmbench").notes)


def test_values_of_a_single_file_have_no_boots() -> None:
    gathered = gather([read(str(DATA / f"stress-{name}.txt")) for name in ("before", "after")], "stress-ng")
    assert all(
        isinstance(group, ReplicateSample) and group.boots is None for group in gathered.observations[0].groups.values()
    )


def test_the_last_digit_that_a_program_printed_is_the_step_of_its_values() -> None:
    gathered = gather(
        [source("Pipe latency: 0.31 microseconds\n", name) for name in "ab"], "lmbench", JudgeRequest(unit="ns")
    )
    assert gathered.observations[0].unit == "ns"
    assert gathered.observations[0].step == pytest.approx(10)
    stress = gather([read(str(DATA / f"stress-{name}.txt")) for name in ("before", "after")], "stress-ng")
    assert stress.observations[0].step == 0.01
    exact = gather([read(str(DATA / f"hyperfine-{name}.json")) for name in ("before", "after")], "hyperfine")
    assert exact.observations[0].step == 0


def test_counts_are_exact_and_their_means_are_not() -> None:
    counts = perf_stat.read(read(str(DATA / "perf-before-1.csv")))
    steps = {series.benchmark: series.step for series in counts.series}
    assert steps == {"task-clock": 0.01, "page-faults": 0, "duration_time": 0}
    means = perf_stat.read(read(str(DATA / "perf-r-before.csv")))
    assert {series.benchmark: series.step for series in means.series} == {"task-clock": 0.01, "page-faults": 1}


def test_instructions_are_counts_and_times_are_not() -> None:
    files = [
        source(f"{value},,instructions:u,1000,100.00,,\n{value},msec,task-clock,1000,100.00,,\n", name)
        for value, name in ((5, "a"), (6, "b"))
    ]
    assert [observed.quantity for observed in gather(files, "perf").observations] == ["count", "speed"]


def test_perf_s_means_need_the_number_of_runs() -> None:
    files = [read(f"{name}={DATA}/perf-r-{name}.csv") for name in ("before", "after")]
    with pytest.raises(NoSize, match=r"how many measurements the mean of task-clock sums up"):
        gather(files, "perf")
    clock = gather(files, "perf", JudgeRequest(n="5")).observations[0]
    group = clock.groups["before"]
    assert isinstance(group, Summary)
    assert (group.mean, group.n) == (1.79, 5)
    assert group.sd == pytest.approx(0.1408 * 1.79 * 5**0.5)


def test_units_of_two_files_are_brought_together_or_refused() -> None:
    one, two = (
        source(f"Pipe latency: {value}\n", name)
        for value, name in (("8.0 microseconds", "a"), ("8100 nanoseconds", "b"))
    )
    [latency] = gather([one, two], "lmbench").observations
    group = latency.groups["b"]
    assert latency.unit == "us"
    assert isinstance(group, ReplicateSample)
    assert group.values.tolist() == pytest.approx([8.1])
    [latency] = gather([one, two], "lmbench", JudgeRequest(unit="ns")).observations
    assert latency.unit == "ns"
    with pytest.raises(MixedUnits, match="'us' and in 'MB/s'"):
        gather([one, source("Pipe latency: 8.1 MB/sec\n", "b")], "lmbench")


def test_a_file_in_which_nothing_is_found_is_a_user_error() -> None:
    with pytest.raises(NothingThere, match="no measurement found") as caught:
        gather([source("hello\n")], "lmbench")
    assert caught.value.advice.startswith("such a file has lines like `Simple syscall: 0.1303 microseconds`")
    with pytest.raises(UserError):
        gather([source("hello\n")], "hyperfine")


@pytest.mark.parametrize("streams", ["NaN", "Infinity", "-1e999", "1.5", "1e20", '"x"', "null"])
def test_a_count_that_is_none_is_said_to_be_none_in_words_of_our_own(streams: str) -> None:
    text = (
        f'{{"start": {{"version": "iperf 3.1", "test_start": {{"protocol": "TCP", "num_streams": {streams}}}}},'
        ' "end": {"sum": {"bits_per_second": 1e9}}}'
    )
    with pytest.raises(Broken, match=r"num_streams is not a (whole )?number") as caught:
        BY_NAME["iperf3"].read(FileSource(shown="f", name="f", data=text.encode()), JudgeRequest())
    assert "convert" not in str(caught.value)


def test_what_python_says_of_a_value_reaches_nobody() -> None:
    assert json_values.why(ValueError("cannot convert float NaN to integer")) == "it holds text that is not JSON"
    assert json_values.why(json_values.Unfit("jobs is not a list")) == "jobs is not a list"


def lines_of(*benchmarks: str) -> str:
    return "".join(f"Benchmark{name}-8\t100\t{time} ns/op\n" for name in benchmarks for time in (90.1, 90.5, 91.2))


def test_files_that_count_once_in_one_benchmark_and_are_pooled_in_another_are_told_apart() -> None:
    texts = {"before": [lines_of("A", "B"), lines_of("A", "B")], "after": [lines_of("A", "B"), lines_of("A")]}
    sources = [
        FileSource(shown=f"{name}{number}.txt", name=name, data=text.encode())
        for name, own in texts.items()
        for number, text in enumerate(own)
    ]
    notes = of_files.gather(sources, BY_NAME["go-bench"], JudgeRequest()).notes
    by_file = [note for note in notes if note.startswith("each file counts once")]
    pooled = [note for note in notes if "taken together" in note]
    assert len(by_file) == len(pooled) == 1
    assert "A" in by_file[0].partition("values")[2] and "B" not in by_file[0]
    assert pooled[0].endswith("(B-8)")
    assert not any("several files of each variant, named alike, say more" in note for note in notes)
