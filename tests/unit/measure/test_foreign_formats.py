"""What benchmark programs write beside times and tables: criterion, google-benchmark, pgbench, Phoronix, rustc-perf."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from kdyno.base.errors import UserError
from kdyno.judge.foreign.gathered import Gathered
from kdyno.judge.stats.observations import ReplicateSample, Summary
from kdyno.judge.verdicts import of_files
from kdyno.measure.readers import xml_values
from kdyno.measure.readers.errors import BadValue, Broken, Intervals, NoSize, UnknownForm
from kdyno.measure.readers.formats import criterion, google_benchmark, hyperfine, perf_stat, pgbench, phoronix
from kdyno.measure.readers.formats.registry import BY_NAME, READERS, recognise
from kdyno.measure.readers.readings import FileSeries
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.source import FileSource, read, read_all

DATA = Path(__file__).parents[2] / "data" / "foreign"
BOMB = """<?xml version="1.0"?>
<!DOCTYPE PhoronixTestSuite [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<PhoronixTestSuite><Generated>&b;</Generated></PhoronixTestSuite>
"""


def source(text: str, name: str = "file") -> FileSource:
    return FileSource(shown=f"{name}.txt", name=name, data=text.encode())


def data(name: str) -> FileSource:
    return read(str(DATA / name))


def pair(first: str, second: str) -> list[FileSource]:
    return read_all([f"before={DATA}/{first}", f"after={DATA}/{second}"])


def gather(sources: list[FileSource], name: str, request: JudgeRequest | None = None) -> Gathered:
    return of_files.gather(sources, BY_NAME[name], request or JudgeRequest())


def only(series: tuple[FileSeries, ...], benchmark: str) -> FileSeries:
    [one] = (one for one in series if one.benchmark == benchmark)
    return one


def summary(gathered: Gathered, benchmark: str, variant: str) -> Summary:
    [group] = (observed.groups[variant] for observed in gathered.observations if observed.benchmark == benchmark)
    assert isinstance(group, Summary)
    return group


# criterion


def test_a_value_of_criterion_is_the_time_of_one_iteration() -> None:
    with (DATA / "criterion-before.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    [series] = criterion.read(data("criterion-before.csv")).series
    assert (series.benchmark, series.unit) == ("sort/stable/100", "ns")
    expected = [float(row["sample_measured_value"]) / float(row["iteration_count"]) for row in rows]
    assert series.values == pytest.approx(expected)
    assert len({row["iteration_count"] for row in rows}) == len(rows) == 10


@pytest.mark.parametrize(("form", "extension"), [("criterion", "csv"), ("google", "json")])
def test_values_of_one_process_are_called_so(form: str, extension: str) -> None:
    report = of_files.judge_files(
        [f"{name}={DATA}/{form}-{name}.{extension}" for name in ("before", "after")], JudgeRequest()
    )
    assert any("are of one process, with one memory layout" in notice for notice in report.notices)


def test_files_of_criterion_put_into_one_are_read() -> None:
    text = (DATA / "criterion-before.csv").read_text()
    series = criterion.read(source(text + text.replace("sort,stable,100", "getpid,,"))).series
    assert [one.benchmark for one in series] == ["sort/stable/100", "getpid"]
    assert series[0].values == series[1].values


def test_criterion_s_earlier_column_is_read() -> None:
    text = "group,function,value,sample_time_nanos,iteration_count\nFibonacci,Iterative,,915000,110740\n"
    assert recognise(source(text), JudgeRequest()).name == "criterion"
    [series] = criterion.read(source(text)).series
    assert (series.benchmark, series.unit) == ("Fibonacci/Iterative", "ns")
    assert series.values == pytest.approx((8.2626,), rel=1e-4)


@pytest.mark.parametrize("bad", ["0", "-1", "x", ""])
def test_a_number_of_iterations_that_is_none_is_a_user_error(bad: str) -> None:
    text = f"group,function,value,sample_measured_value,unit,iteration_count\na,,,5.0,ns,{bad}\n"
    with pytest.raises(BadValue, match="iteration_count"):
        criterion.read(source(text))


# google-benchmark


def test_repetitions_of_google_benchmark_are_values_and_its_aggregates_are_not() -> None:
    document = json.loads((DATA / "google-before.json").read_text())
    runs = [entry for entry in document["benchmarks"] if entry["run_type"] == "iteration"]
    output = google_benchmark.read(data("google-before.json"))
    [series] = output.series
    assert (series.benchmark, series.unit) == ("BM_getppid", "ns")
    assert series.values == tuple(entry["real_time"] for entry in runs if entry["name"] == "BM_getppid")
    assert len(series.values) == 3
    assert output.notes[0] == "BM_fails/1 failed: left out"
    assert "google-benchmark's own means and medians weren't read: its repetitions were" in output.notes


def test_where_google_benchmark_kept_aggregates_alone_they_are_the_summary() -> None:
    document = json.loads((DATA / "google-means-before.json").read_text())
    printed = {entry["aggregate_name"]: entry["real_time"] for entry in document["benchmarks"]}
    gathered = gather(pair("google-means-before.json", "google-means-after.json"), "google-benchmark")
    group = summary(gathered, "BM_getppid", "before")
    assert (group.mean, group.sd, group.n) == pytest.approx((printed["mean"], printed["stddev"], 5))


def test_google_benchmark_s_word_on_frequencies_is_passed_on() -> None:
    text = (
        (DATA / "google-before.json").read_text().replace('"cpu_scaling_enabled": false', '"cpu_scaling_enabled": true')
    )
    assert "google-benchmark says that the CPU's frequency was scaled" in google_benchmark.read(source(text)).notes


@pytest.mark.parametrize(
    "entry", ['{"real_time": 1}', '{"name": "a", "real_time": "1"}', '{"name": 1, "real_time": 1}', "[1]"]
)
def test_broken_google_benchmark_json_is_a_user_error(entry: str) -> None:
    with pytest.raises(Broken):
        google_benchmark.read(source(f'{{"benchmarks": [{entry}]}}'))


# hyperfine's CSV


def test_means_of_hyperfine_s_csv_need_the_number_of_runs_and_the_error_says_so() -> None:
    files = pair("hyperfine-means-before.csv", "hyperfine-means-after.csv")
    with pytest.raises(NoSize, match="says how many measurements the mean of ls / sums up") as caught:
        gather(files, "hyperfine")
    assert "--n 12" in caught.value.advice
    with (DATA / "hyperfine-means-before.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    group = summary(gather(files, "hyperfine", JudgeRequest(n="20", unit="s")), "ls /", "before")
    assert (group.mean, group.sd, group.n) == pytest.approx((float(row["mean"]), float(row["stddev"]), 20))


def test_parameters_in_hyperfine_s_csv_do_no_harm_and_one_run_has_no_deviation() -> None:
    text = "command,mean,stddev,median,user,system,min,max,parameter_n\nseq 1,0.5,,0.5,0.1,0.1,0.5,0.5,1\n"
    [series] = hyperfine.read(source(text)).series
    assert (series.command, series.values, series.sd) == ("seq 1", (0.5,), None)


@pytest.mark.parametrize("row", ["ls,x,0.1,1,1,1,1,1", "ls,-1,0.1,1,1,1,1,1", "ls,1,-0.1,1,1,1,1,1"])
def test_what_is_no_mean_in_hyperfine_s_csv_is_a_user_error(row: str) -> None:
    with pytest.raises(BadValue, match="line 2"):
        hyperfine.read(source(f"command,mean,stddev,median,user,system,min,max\n{row}\n"))


# pgbench


def test_pgbench_s_runs_are_values_of_what_they_have_in_common() -> None:
    [series] = pgbench.read(data("pgbench-before.txt")).series
    assert series.benchmark == "pgbench TPC-B (sort of), scale 2, simple, clients 4, threads 2"
    assert series.values == (3519.491157, 4119.114076, 4051.026748)
    assert (series.unit, series.direction) == ("tps", "higher")
    assert series.step == pytest.approx(1e-6)


def test_pgbench_s_lines_of_progress_are_no_replicates() -> None:
    output = pgbench.read(data("pgbench-progress.txt"))
    assert [series.values for series in output.series] == [(73684.017442,)]
    assert output.notes == ("the lines of progress (-P) weren't read: parts of one run are not replicates",)


def test_under_a_fixed_rate_the_latency_is_what_pgbench_measured() -> None:
    [series] = pgbench.read(data("pgbench-rate.txt")).series
    assert (series.values, series.unit, series.direction) == ((0.788,), "ms", "lower")
    assert series.benchmark.endswith("clients 2, threads 1, latency at -R")


def test_of_the_two_rates_of_an_earlier_pgbench_the_one_without_connecting_is_read() -> None:
    text = (DATA / "pgbench-before.txt").read_text().split("pgbench (15")[1]
    lines = [
        line for line in text.splitlines() if line.startswith(("transaction", "scaling", "query", "number of clients"))
    ]
    lines += [
        "tps = 85.184871 (including connections establishing)",
        "tps = 85.296346 (excluding connections establishing)",
    ]
    [series] = pgbench.read(source("\n".join(lines) + "\n")).series
    assert series.values == (85.296346,)


def test_transactions_of_pgbench_that_failed_are_said_and_scripts_have_no_directory() -> None:
    text = (DATA / "pgbench-rate.txt").read_text()
    text = text.replace("transactions: 0 (0.000%)", "transactions: 12 (3.000%)").replace(
        "<builtin: TPC-B (sort of)>", "/a/b/q.sql"
    )
    output = pgbench.read(source(text))
    assert "12 transactions failed in a run" in output.notes
    assert output.series[0].benchmark.startswith("pgbench q.sql, scale 2")


# Phoronix Test Suite


def test_identifiers_in_a_composite_are_the_variants_and_raw_strings_the_values() -> None:
    gathered = gather([data("phoronix.xml")], "phoronix")
    assert gathered.variants == ("6.12.1", "6.12.9")
    first = gathered.observations[0]
    assert (first.benchmark, first.unit, first.direction) == ("Gzip Of Numbers 1.0, Level: 1", "ms", "lower")
    group = first.groups["6.12.1"]
    assert isinstance(group, ReplicateSample)
    assert group.values.tolist() == pytest.approx([39, 38, 43, 38, 56, 43, 45, 58, 42, 54, 42, 43])
    assert first.step == pytest.approx(1)
    assert any("repeats a test until its values agree" in note for note in gathered.notes)


def test_composites_with_one_identifier_each_are_named_by_their_files() -> None:
    assert gather(pair("phoronix-before.xml", "phoronix-after.xml"), "phoronix").variants == ("before", "after")


def test_composites_with_several_identifiers_each_stay_apart() -> None:
    gathered = gather([read(f"{name}={DATA}/phoronix.xml") for name in ("old", "new")], "phoronix")
    assert gathered.variants == ("old 6.12.1", "old 6.12.9", "new 6.12.1", "new 6.12.9")


@pytest.mark.parametrize(("proportion", "direction"), [("LIB", "lower"), ("HIB", "higher")])
def test_what_is_better_is_read_from_the_proportion(proportion: str, direction: str) -> None:
    text = (DATA / "phoronix.xml").read_text().replace(">LIB<", f">{proportion}<").replace("Seconds", "Score")
    assert {series.direction for series in phoronix.read(source(text)).series} == {direction}


def test_a_composite_without_single_values_has_its_means_and_sensors_are_left_out() -> None:
    text = (DATA / "phoronix-before.xml").read_text()
    start, end = text.index("<RawString>"), text.index("</RawString>")
    mean = phoronix.read(source(text[:start] + "<RawString>" + text[end:]))
    assert mean.series[0].values == (0.045,)
    sensor = phoronix.read(source(text[:start] + "<RawString>40.1,41.5,42" + text[end:]))
    assert sensor.notes[0] == "Gzip Of Numbers 1.0, Level: 1 of 6.12.1 has no single values: left out"


def test_a_small_file_that_would_become_a_large_one_is_refused() -> None:
    assert recognise(source(BOMB), JudgeRequest()).name == "phoronix"
    with pytest.raises(Broken, match="document type"):
        phoronix.read(source(BOMB))


@pytest.mark.parametrize("text", ["<a>" * 60 + "</a>" * 60, "<a>", "<a></b>", ""])
def test_what_is_no_xml_or_too_deep_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        xml_values.tree(text)


def test_xml_of_something_else_is_refused() -> None:
    with pytest.raises(UnknownForm, match="is XML, but not in the form of phoronix"):
        recognise(source('<?xml version="1.0"?><svg/>'), JudgeRequest())


# rustc-perf


def test_rustc_perf_s_means_are_summaries_of_as_many_iterations_as_the_user_says() -> None:
    files = pair("rustc-perf-before.txt", "rustc-perf-after.txt")
    with pytest.raises(NoSize, match="says how many measurements the mean of"):
        gather(files, "rustc-perf")
    gathered = gather(files, "rustc-perf", JudgeRequest(n="5"))
    group = summary(gathered, "hashmap/hashmap-insert-100k cycles", "before")
    # What is printed has n in its denominator.
    assert (group.mean, group.n, group.sd) == pytest.approx((41822001, 5, 151023 * (5 / 4) ** 0.5))
    units = {observed.benchmark: observed.unit for observed in gathered.observations}
    assert units["nom/nom-parse-json wall time"] == "us"
    assert len(units) == 8


def test_a_comparison_of_rustc_perf_s_site_has_its_two_compilers() -> None:
    gathered = gather([data("rustc-perf.json")], "rustc-perf")
    assert gathered.variants == ("0f1e2d3c4b", "Modified")
    assert [observed.benchmark for observed in gathered.observations] == ["helloworld debug full", "nom-parse-json"]
    group = gathered.observations[0].groups["Modified"]
    assert isinstance(group, ReplicateSample)
    assert group.values.tolist() == [214227345.0]


def test_what_rustc_perf_s_collector_adds_to_perf_s_lines_is_read() -> None:
    lines = ("214013332;;instructions:u;500;100.00;;", "0.123456789;;wall-time;4;100.00", "130000;;max-rss;3;100.00")
    output = perf_stat.read(source("\n".join((*lines, "!wall-time:0.1")) + "\n"))
    assert [series.benchmark for series in output.series] == ["instructions:u", "wall-time", "max-rss"]


# perf stat -j


def test_perf_s_json_lines_say_what_its_csv_says() -> None:
    output = perf_stat.read(data("perf-j-before.json"))
    assert [(series.benchmark, series.values, series.unit) for series in output.series] == [
        ("task-clock", (1.336268,), "ms"),
        ("page-faults", (104.0,), ""),
    ]
    assert "cycles was not supported: left out" in output.notes


def test_perf_s_json_lines_have_standard_errors_places_and_intervals() -> None:
    clock = only(perf_stat.read(data("perf-j-r.json")).series, "task-clock")
    text = (DATA / "perf-j-r.json").read_text().splitlines()[0]
    assert clock.error == pytest.approx(json.loads(text)["variance"] / 100)
    placed = (
        '{{"{}" : "{}", "counter-value" : "5.5", "unit" : "msec", "event" : "cpu-clock", "pcnt-running" : 100.00}}\n'
    )
    placed_source = source(
        "".join(placed.format(*place) for place in (("cpu", "1"), ("core", "S0-D0-C1"), ("socket", "S0")))
    )
    assert [series.benchmark for series in perf_stat.read(placed_source).series] == [
        "cpu-clock, CPU1",
        "cpu-clock, S0-D0-C1",
        "cpu-clock, S0",
    ]
    with pytest.raises(Intervals, match="intervals of perf stat -I"):
        perf_stat.read(source('{"interval" : 0.1, "counter-value" : "1", "unit" : "", "event" : "faults"}\n'))


def test_a_line_of_perf_s_json_that_is_none_is_a_user_error() -> None:
    with pytest.raises(Broken, match="line 1: invalid JSON"):
        perf_stat.read(source('{"counter-value" : "1", \n'))


@pytest.mark.parametrize("form", [reader.name for reader in READERS])
@pytest.mark.parametrize("text", ["hello,world\nx,y\n", "hello\n", "[]\n", "<?xml?>\n"])
def test_a_file_of_something_else_is_a_user_error_whatever_the_user_says_it_is(form: str, text: str) -> None:
    with pytest.raises(UserError):
        gather([source(text, name) for name in "ab"], form)
