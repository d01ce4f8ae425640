"""Workloads: what each adds to a job, and what it makes of the agent's report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from kdyno.base.measurement import Benchmark, BootStatus, Sample
from kdyno.boot.base import BootEnd
from kdyno.measure.guest.agent import UnknownTest
from kdyno.measure.guest.job import Program
from kdyno.measure.guest.steps import MOST_STDERR, MOST_STDOUT, StepReport
from kdyno.measure.guest.stream import AgentReport, Asked, read_stream
from kdyno.measure.workload.base import NoTests, NotRead, WorkloadSettings
from kdyno.measure.workload.command import CommandWorkload
from kdyno.measure.workload.lmbench import LmbenchWorkload, PathIsNotATest
from kdyno.measure.workload.metrics import LONGEST_LINE, MOST_LINES, MOST_METRICS, AnyMetric, EventMetric, Metric
from kdyno.measure.workload.needs import Load
from kdyno.measure.workload.registry import WORKLOADS, WorkloadConfig
from kdyno.runs.one_boot import attach_samples
from kdyno.runs.run_plan import plan_run
from tests.fuzz.check import bounded_time
from tests.unit.measure.test_stream import HELLO, line, stream
from tests.unit.pmu_specimen import specimen, write
from tests.unit.runs.test_forecast import prepared
from tests.unit.runs.test_keys import changed

ANY: TypeAdapter[WorkloadSettings] = TypeAdapter(WorkloadConfig)
PIPE = Benchmark(name="lat_pipe.roundtrip", test="lat_pipe", unit="instr", direction="lower", description="")
METRIC: TypeAdapter[Any] = TypeAdapter(AnyMetric)
COMMAND = Asked("model", 1, programs=(Program(name="command", command=("x",)),))
OUTPUT = b"warming up\nops: 12.5 per s\np99 = 830 us\n"


def metric(pattern: str, unit: str = "us", direction: Any = "lower") -> Metric:
    return Metric(pattern=pattern, unit=unit, direction=direction)


def command(**patterns: str) -> CommandWorkload:
    metrics = {name: metric(pattern) for name, pattern in patterns.items()}
    return CommandWorkload(command=("sh", "-c", "true"), metrics=metrics)


def agent_report(stdout: bytes, **more: Any) -> AgentReport:
    of_step: dict[str, Any] = {"status": 0, "stderr": b"", "stdout_is_cut": False}
    of_step |= {name: value for name, value in more.items() if name in of_step}
    step = StepReport("command", "command", stdout=stdout, **of_step)
    return AgentReport(
        steps=(step,), complete=True, **{name: value for name, value in more.items() if name not in of_step}
    )


def values(report: AgentReport) -> dict[str, float | None]:
    return {sample.benchmark: sample.value for sample in report.samples}


def test_a_workload_that_names_no_type_is_of_the_first_kind() -> None:
    assert ANY.validate_python({"tests": ["lat_pipe"]}) == LmbenchWorkload(tests=("lat_pipe",))
    assert next(iter(WORKLOADS)) == "lmbench"


def test_every_kind_survives_being_written_and_read() -> None:
    for workload in (LmbenchWorkload(iterations=3), command(p99=r"p99 = (\d+)")):
        assert ANY.validate_json(workload.model_dump_json()) == workload


def test_a_path_in_the_place_of_a_test_is_refused_with_its_machine() -> None:
    with pytest.raises(PathIsNotATest, match="tcp_ping, which is a path") as refused:
        LmbenchWorkload(tests=("tcp_ping",)).part("model")
    assert "--machine uml" in refused.value.advice


def test_lmbench_adds_its_tests_and_the_iterations_of_the_lane() -> None:
    part = LmbenchWorkload(tests=("lat_pipe",)).part("wall")
    assert ([order.name for order in part.tests], part.iterations, part.programs) == (["lat_pipe"], 11, ())
    assert LmbenchWorkload().with_iterations(40).part("model").iterations == 40
    with pytest.raises(UnknownTest):
        LmbenchWorkload(tests=("lat_pip",)).part("model")


def test_lmbench_names_the_benchmarks_of_its_tests_and_may_be_narrowed_to_some() -> None:
    assert LmbenchWorkload(tests=("lat_pipe",)).benchmark_names() == ("lat_pipe",)
    assert LmbenchWorkload().select_tests(("lat_pipe",)).benchmark_names() == ("lat_pipe",)
    assert LmbenchWorkload().select_tests(()) == LmbenchWorkload()


def test_what_is_counted_of_lmbench_are_its_tests_with_their_parameters() -> None:
    workload = LmbenchWorkload(tests=("lat_ctx", "lat_pipe"), params={"lat_ctx": {"processes": 4}})
    assert workload.load() == Load(tests=("lat_ctx", "lat_pipe"), params={"lat_ctx": {"processes": 4}})
    assert workload.load(("lat_pipe",)) == Load(tests=("lat_pipe",))


def test_nothing_is_counted_of_a_command_whose_numbers_are_its_own() -> None:
    assert command(p99=r"(\d+)").load() == Load()


def test_what_the_agent_measured_itself_is_taken_as_it_is() -> None:
    report = AgentReport(
        benchmarks=(PIPE,), samples=(Sample(benchmark=PIPE.name, iteration=0, elapsed=5, work=1),), complete=True
    )
    assert LmbenchWorkload().read(report) == report


def test_a_command_adds_itself_and_no_tests() -> None:
    part = command(p99=r"(\d+)").part("wall")
    assert (part.programs[0].command, part.tests, part.iterations) == (("sh", "-c", "true"), (), 1)


def test_a_command_has_no_tests_to_choose_from_and_one_sample_in_a_boot() -> None:
    workload = command(p99=r"(\d+)")
    assert workload.select_tests(()) == workload.with_iterations(1) == workload
    assert (workload.iterations_range, workload.benchmark_names()) == ((1, 1), ("p99",))
    with pytest.raises(NoTests, match="type `command` has no tests"):
        workload.select_tests(("lat_pipe",))


def test_a_commands_numbers_become_samples_of_its_benchmarks() -> None:
    workload = CommandWorkload(
        command=("serve",),
        metrics={"ops": metric(r"ops: (\S+)", "1/s", "higher"), "p99": metric(r"p99 = (\d+)", "us")},
    )
    report = workload.read(agent_report(OUTPUT))
    assert values(report) == {"ops": 12.5, "p99": 830}
    assert [
        (benchmark.name, benchmark.test, benchmark.unit, benchmark.direction)
        for benchmark in workload.describe_benchmarks(report)
    ] == [
        ("ops", "command", "1/s", "higher"),
        ("p99", "command", "us", "lower"),
    ]
    assert report.broken == {}


def counting(**events: tuple[str, int]) -> CommandWorkload:
    metrics = {
        name: EventMetric(event=event, region=region, unit="walks", direction="lower")
        for name, (event, region) in events.items()
    }
    return CommandWorkload(command=("loads",), metrics=metrics)


def test_what_was_counted_in_a_region_is_the_mean_of_its_iterations_without_interrupts(tmp_path: Path) -> None:
    record = specimen()
    null = record.regions[0]
    of = {name: column for column, name in enumerate(record.names)}
    work = [counts[:2].sum(axis=0) for counts in null.iterations.values()]
    mean = {name: sum(int(row[of[name]]) for row in work) / len(work) for name in record.names}
    workload = counting(calls=("calls", 0), both=("instructions+calls", 0), pipe=("instructions", 2))
    report = workload.read(agent_report(b""), write(tmp_path / "record", record))
    assert values(report) == {"calls": mean["calls"], "both": mean["instructions"] + mean["calls"], "pipe": 12}
    assert workload.events() == ("calls", "instructions")
    assert workload.describe_benchmarks(report)[0].description == "calls, as the emulated PMU counts it"


def test_a_count_that_is_not_there_or_is_0_is_broken_and_the_others_are_not(tmp_path: Path) -> None:
    workload = counting(
        good=("instructions", 2), region=("instructions", 7), event=("user_loads", 2), none=("calls", 2)
    )
    report = workload.read(agent_report(b""), write(tmp_path / "record"))
    assert values(report) == {"good": 12}
    assert report.broken == {
        "region": "the command marked no region 7",
        "event": "the PMU didn't count user_loads",
        "none": "region 2 has no calls: a ratio to 0 can't be judged",
    }
    with pytest.raises(NotRead, match="the boot left no PMU record"):
        workload.read(agent_report(b""))


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ({}, "pattern\n  Field required"),
        ({"pattern": "(1)", "event": "loads", "region": 0}, "Extra inputs are not permitted"),
        ({"event": "loads"}, "region\n  Field required"),
        ({"pattern": "(1)", "region": 0}, "Extra inputs are not permitted"),
        ({"event": "loads + stores", "region": 0}, "pattern"),
        ({"event": "loads", "region": 1024}, "less than 1024"),
    ],
)
def test_a_number_has_one_place(place: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        METRIC.validate_python({"unit": "s", "direction": "lower", **place})


def test_what_a_guest_declares_by_itself_is_no_part_of_a_commands_samples() -> None:
    forged = Sample(benchmark=PIPE.name, iteration=0, elapsed=5, work=1)
    workload = command(p99=r"p99 = (\d+)")
    report = workload.read(
        agent_report(OUTPUT, benchmarks=(PIPE,), samples=(forged,), unsupported={"x": "y"}, broken={"p99": "z"})
    )
    assert (values(report), report.unsupported, report.broken) == ({"p99": 830}, {}, {})
    assert [benchmark.name for benchmark in workload.describe_benchmarks(report)] == ["p99"]


@pytest.mark.parametrize(
    ("stdout", "why"),
    [
        (b"nothing\n", "no line of the output matches its pattern"),
        (b"", "no line of the output matches its pattern"),
        (b"x=1\ny\nx=1\n", "its pattern matches more than once: in line 1 and in line 3"),
        (b"x=1 x=2\n", "its pattern matches more than once: in line 1 and in line 1"),
        (b"x=0\n", "line 1 says '0', which is not a positive number"),
        (b"\nx=-3\n", "line 2 says '-3', which is not a positive number"),
        (b"x=nan\n", "line 1 says 'nan', which is not a positive number"),
        (b"x=inf\n", "line 1 says 'inf', which is not a positive number"),
        (b"x=1e999\n", "line 1 says '1e999', which is not a positive number"),
        (b"x=fast\n", "line 1 says 'fast', which is not a positive number"),
        (b"x=\x1b[31m\xffred\n", "line 1 says '\ufffdred', which is not a positive number"),
        (b"x=" + b"9" * 1000 + b"\n", f"line 1 says '{'9' * 60}', which is not a positive number"),
        (b" " * LONGEST_LINE + b"x=1\n", "no line of the output matches its pattern"),
    ],
)
def test_a_metric_that_is_missing_repeated_or_no_positive_number_is_broken_and_the_others_are_not(
    stdout: bytes, why: str
) -> None:
    report = command(good=r"good (\d+)", bad=r"x=(\S*)").read(agent_report(stdout + b"\ngood 5\n"))
    assert values(report) == {"good": 5}
    assert report.broken == {"bad": why}
    with pytest.raises(NotRead, match="the command printed none of its numbers; bad: "):
        command(bad=r"x=(\S*)").read(agent_report(stdout))


def test_a_group_that_took_no_part_in_the_match_is_no_number() -> None:
    assert command(good=r"p99 = (\d+)", bad=r"ops:(x)?").read(agent_report(OUTPUT)).broken == {
        "bad": "line 2 says '', which is not a positive number"
    }


def test_lines_may_end_as_on_a_terminal_and_the_last_one_not_at_all() -> None:
    assert values(command(a=r"^a (\d+)$", b=r"^b (\d+)$").read(agent_report(b"a 1\r\nb 2"))) == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (agent_report(OUTPUT, status=None), "the command left no exit status"),
        (agent_report(OUTPUT, status=1), "the command ended with status 1"),
        (agent_report(b"", status=127, stderr=b"sh: x\n\x1b[1mserve: not found\n\n"), "status 127: serve: not found"),
        (
            agent_report(OUTPUT, stdout_is_cut=True),
            "the command wrote more than 1,048,576 bytes to its standard output",
        ),
        (agent_report(b"\n" * MOST_LINES), "the command wrote more than 10,000 lines to its standard output"),
    ],
)
def test_a_command_that_fails_or_says_too_much_fails_the_boot(report: AgentReport, why: str) -> None:
    with pytest.raises(NotRead) as caught:
        command(p99=r"p99 = (\d+)").read(report)
    assert str(caught.value).endswith(why)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"p99 = (\d+", r"not a regular expression \(RE2\): missing \)"),
        (r"p99 = {(?P<x>}", r"not a regular expression \(RE2\): "),
        (r"(?<=p99 = )(\d+)", r"not a regular expression \(RE2\): invalid perl operator: \(\?<"),
        (r"(\d)\1", r"not a regular expression \(RE2\): invalid escape sequence: \\1"),
        (r"x(?:.{1,100}y){3}(1)", "it takes 2[0-9]{3} steps, and 2000 are the most"),
        (r"((?:\pL{30}\pN?){20})", r"not a regular expression \(RE2\): pattern too large"),
        (r"p99 = \d+", "needs one group, .* it has 0"),
        (r"(p99) = (\d+)", "needs one group, .* it has 2"),
        ("(" * 240 + "1" + ")" * 240, "needs one group, .* it has 240"),
        ("x" * 600, "at most 500 characters"),
    ],
)
def test_a_pattern_must_be_a_regular_expression_with_one_group(pattern: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        metric(pattern)


def test_groups_that_do_not_count_are_free() -> None:
    assert values(command(p99=r"(?:p50|p99) = (\d+)").read(agent_report(OUTPUT))) == {"p99": 830}


@pytest.mark.parametrize("unit", ["", " ", "us ", "\x1b[1m", "a\nb", "x" * 41])
def test_a_unit_is_a_short_printable_text(unit: str) -> None:
    with pytest.raises(ValidationError):
        metric("(1)", unit)


def test_a_time_that_a_command_takes_in_the_model_lane_is_said_to_be_virtual() -> None:
    [model], [wall] = (command(p99="(1)").notices(lane) for lane in ("model", "wall"))
    assert "virtual" in model and "virtual" not in wall
    assert LmbenchWorkload().notices("model") == ()


def end(report: AgentReport, status: BootStatus = "ok") -> BootEnd:
    return BootEnd(status, "" if status == "ok" else "panic", 1.0, 0.5, (), Path("c"), Path("s"), report)


def test_a_boot_whose_command_failed_has_failed_and_still_names_its_benchmarks() -> None:
    workload = command(p99=r"p99 = (\d+)")
    failed = attach_samples(end(agent_report(OUTPUT, status=2)), workload)
    assert (failed.status, failed.reason) == ("failed", "the command ended with status 2")
    assert ([benchmark.name for benchmark in failed.report.benchmarks], failed.report.samples) == (["p99"], ())
    ok = attach_samples(end(agent_report(OUTPUT)), workload)
    assert (ok.status, values(ok.report)) == ("ok", {"p99": 830})


def test_a_boot_that_failed_before_keeps_its_reason() -> None:
    failed = attach_samples(end(agent_report(b"", benchmarks=(PIPE,)), "failed"), command(p99="(1)"))
    assert (failed.status, failed.reason) == ("failed", "panic")
    assert [benchmark.name for benchmark in failed.report.benchmarks] == ["p99"]
    report = AgentReport(benchmarks=(PIPE,))
    assert attach_samples(end(report, "lost"), LmbenchWorkload()) == end(report, "lost")


def test_how_output_is_read_decides_a_boot_as_the_command_does() -> None:
    one, two = command(p99=r"p99 = (\d+)"), command(p99=r"ops: (\S+)")
    of = prepared()
    keys = [set(plan_run(changed(of, workload=workload)).keys.values()) for workload in (one, two)]
    assert not keys[0] & keys[1]
    job = of.job.model_copy(update={"programs": (Program(name="command", command=("other",)),)})
    assert not keys[0] & set(plan_run(replace(changed(of, workload=one), job=job)).keys.values())


def outputs(*pieces: tuple[str, bytes]) -> list[bytes]:
    records: list[dict[str, Any]] = [
        HELLO,
        {"v": 1, "type": "step", "program": "command", "phase": "command", "run": 0},
    ]
    records += [{"v": 1, "type": "output", "stream": name, "hex": piece.hex()} for name, piece in pieces]
    times = {"elapsed": 5_000_000_000, "user": 1_500_000_000, "system": 250_000_000}
    records += [
        {"v": 1, "type": "exited", "status": 0, **times, "busy_user": 4_000_000_000, "busy_system": 3_000_000_000},
        {"v": 1, "type": "left", "program": "command", "processes": 2},
    ]
    return [line(record) for record in (*records, {"v": 1, "type": "end", "records": len(records)})]


def test_a_commands_output_is_put_together_from_its_records(tmp_path: Path) -> None:
    pieces = [("stdout", b"op"), ("stderr", b"careful\n"), ("stdout", b"s 5\n")]
    report = read_stream(stream(tmp_path, *outputs(*pieces)), COMMAND)
    [step] = report.steps
    assert (step.stdout, step.stderr, step.status) == (b"ops 5\n", b"careful\n", 0)
    assert (step.elapsed, step.user, step.system) == (5.0, 1.5, 0.25)
    assert (step.busy_user, step.busy_system) == (4.0, 3.0)
    assert report.complete and not step.stdout_is_cut and report.left == {"command": 2}


def test_no_more_than_the_limit_is_kept_of_a_commands_output(tmp_path: Path) -> None:
    piece = b"x" * (MOST_STDOUT // 4)
    exactly = read_stream(stream(tmp_path, *outputs(*[("stdout", piece)] * 4)), COMMAND)
    assert (len(exactly.steps[0].stdout), exactly.steps[0].stdout_is_cut) == (MOST_STDOUT, False)
    more = read_stream(stream(tmp_path, *outputs(*[("stdout", piece)] * 4, ("stdout", b"y"), ("stdout", b""))), COMMAND)
    assert (len(more.steps[0].stdout), more.steps[0].stdout_is_cut, more.complete) == (MOST_STDOUT, True, True)
    loud = read_stream(stream(tmp_path, *outputs(("stderr", piece), ("stderr", b"the end"))), COMMAND)
    assert len(loud.steps[0].stderr) == MOST_STDERR and loud.steps[0].stderr.endswith(b"the end")


def test_the_record_of_an_experiment_tells_its_workload() -> None:
    workload = command(p99=r"p99 = (\d+)")
    recorded = json.loads(prepared().experiment.model_copy(update={"workload": workload}).model_dump_json())
    assert recorded["workload"]["type"] == "command"
    assert recorded["workload"]["metrics"]["p99"]["pattern"] == r"p99 = (\d+)"


def test_a_pattern_that_python_would_never_be_done_with_is_done_with_all_that_a_command_may_write() -> None:
    output = (b"a" * (LONGEST_LINE - 1) + b"!\n") * (MOST_STDOUT // LONGEST_LINE - 1)
    with bounded_time():
        report = command(good=r"good (\d+)", bad=r"(a+)+$").read(agent_report(b"good 5\n" + output))
    assert report.broken == {"bad": "no line of the output matches its pattern"}


def test_an_experiment_has_no_more_metrics_than_anybody_compares() -> None:
    with pytest.raises(ValidationError, match=f"at most {MOST_METRICS}"):
        command(**{f"m{number}": "(1)" for number in range(MOST_METRICS + 1)})


def test_a_pattern_that_is_refused_says_nothing_by_itself(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValidationError):
        metric("(")
    assert capfd.readouterr() == ("", "")
