"""The agent stream: what is sound is read, what is hostile or cut short is named and never raises."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kdyno.base.measurement import Benchmark, value
from kdyno.measure.guest.job import CommandBenchmark, Program
from kdyno.measure.guest.stream import Asked, read_stream
from kdyno.measure.guest.stream_records import LONGEST_LINE, LONGEST_TEXT

HELLO = {
    "v": 1,
    "type": "hello",
    "agent": "0.1.0",
    "kernel": "6.12.1",
    "lane": "model",
    "icount_shift": 5,
    "cpus": 1,
    "init": True,
}
BENCHMARK = {
    "v": 1,
    "type": "benchmark",
    "name": "lat_x",
    "test": "lat_x",
    "unit": "instr",
    "direction": "lower",
    "description": "x",
}
ASKED = Asked("model", 2, (Benchmark(name="lat_x", test="lat_x", unit="instr", direction="lower", description="X"),))
SAMPLE = {"v": 1, "type": "sample", "benchmark": "lat_x", "iteration": 0, "elapsed": 500, "work": 10}


def line(record: object) -> bytes:
    return json.dumps(record).encode() + b"\n"


def stream(tmp_path: Path, *lines: bytes) -> Path:
    path = tmp_path / "stream.jsonl"
    path.write_bytes(b"".join(lines))
    return path


BROKEN = line({"v": 1, "type": "broken", "benchmark": "lat_x", "reason": "no"})
TIMES = {"elapsed": 5, "user": 2, "system": 1, "busy_user": 4, "busy_system": 3}
EXITED = line({"v": 1, "type": "exited", "status": 0, **TIMES})
FAILED = line({"v": 1, "type": "exited", "status": 1, **TIMES})
LEFT = line({"v": 1, "type": "left", "program": "x", "processes": 1})
TWICE = Program(name="x", set_up=("up",), command=("run",), tear_down=("down",), runs=2)
WHOLE = (line(HELLO), line(BENCHMARK), line(SAMPLE), line({"v": 1, "type": "end", "records": 3}))


def test_a_whole_stream_is_complete_and_without_fault(tmp_path: Path) -> None:
    report = read_stream(stream(tmp_path, *WHOLE), ASKED)
    assert report.complete
    assert report.fault is None
    assert [(sample.elapsed, sample.work) for sample in report.samples] == [(500, 10)]


def test_a_stream_without_its_end_is_not_complete(tmp_path: Path) -> None:
    report = read_stream(stream(tmp_path, *WHOLE[:3]), ASKED)
    assert not report.complete
    assert len(report.samples) == 1


def test_no_stream_at_all_is_a_fault_not_an_exception(tmp_path: Path) -> None:
    assert read_stream(tmp_path / "none", ASKED).fault == "no stream"


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ((*WHOLE[:2], WHOLE[2][:-5]), "agent record 2 is truncated"),
        ((*WHOLE[:2], b'{"v":1,\xff\xfe}\n'), "agent record 2 is not UTF-8 (byte 7)"),
        ((*WHOLE[:2], b"not json\n"), "agent record 2: the record: it is no JSON"),
        ((line(HELLO | {"v": 2}),), "agent record 0: version 2, but this kdyno reads version 1"),
        ((*WHOLE[:2], line(SAMPLE | {"extra": 1})), "agent record 2: sample.extra: there is no such key"),
        ((*WHOLE[:2], line(SAMPLE | {"elapsed": 0})), "agent record 2: sample.elapsed: it must be greater than 0"),
        ((*WHOLE[:2], line(SAMPLE | {"work": 1 << 70})), "agent record 2: sample.work"),
        ((*WHOLE[:2], line(SAMPLE | {"elapsed": "5"})), "agent record 2: sample.elapsed"),
        ((WHOLE[0], WHOLE[2]), "agent record 1: lat_x was not declared"),
        ((*WHOLE[:3], WHOLE[2]), "agent record 3: lat_x iteration 0 comes twice"),
        ((*WHOLE[:2], WHOLE[3]), "agent record 2: the agent counted 3 records, 2 came"),
        ((*WHOLE, WHOLE[2]), "agent record 4 comes after the end"),
        ((WHOLE[1],), "agent record 0: the stream must start with one hello"),
        ((WHOLE[0], WHOLE[0]), "agent record 1: the stream must start with one hello"),
        ((WHOLE[0], b"x" * (LONGEST_LINE + 5) + b"\n"), f"agent record 1 is longer than {LONGEST_LINE} bytes"),
        ((WHOLE[0], line({"v": 1, "type": "surprise"})), "agent record 1: the record: there is no such type"),
        ((*WHOLE[:2], b'{"v":1,"x":' + b"[" * 100_000), "agent record 2 is truncated"),
        ((*WHOLE[:2], b'{"v":1,"x":' + b"[" * 100_000 + b"\n"), "agent record 2: the record: it is no JSON: recursion"),
        ((*WHOLE[:2], line(SAMPLE).replace(b"500", b"5" * 5000)), "agent record 2: the record: it is no JSON: number"),
        ((line(HELLO).replace(b"6.12.1", rb"\ud800"),), "agent record 0: the record: it is no JSON: "),
        ((line(HELLO | {"lane": "wall"}),), "agent record 0: it measures in lane wall, the job says model"),
        ((*WHOLE[:2], WHOLE[1]), "agent record 2: it begins lat_x where nothing more was expected"),
        ((WHOLE[0], line(BENCHMARK | {"name": "lat_y"})), "agent record 1: it begins lat_y where lat_x was expected"),
        ((WHOLE[0], line(BENCHMARK | {"unit": "MB/s"})), "agent record 1: it says unit MB/s of lat_x, which is instr"),
        ((*WHOLE[:2], line(SAMPLE | {"iteration": 2})), "agent record 2: lat_x iteration 2, of 2 that were requested"),
        ((WHOLE[0], BROKEN), "agent record 1: lat_x was not declared"),
        ((*WHOLE[:2], BROKEN, BROKEN), "agent record 3: lat_x is broken twice"),
        ((WHOLE[0], EXITED), "agent record 1: it reports on a program where lat_x was expected"),
        ((WHOLE[0], line({"v": 1, "type": "end", "records": 1})), "agent record 1: the end, where lat_x was expected"),
    ],
)
def test_an_unsound_stream_is_read_up_to_its_first_fault_which_is_named(
    tmp_path: Path, lines: tuple[bytes, ...], fault: str
) -> None:
    report = read_stream(stream(tmp_path, *lines), ASKED)
    assert not report.complete
    assert report.fault is not None
    assert report.fault.startswith(fault)


def step(phase: str, run: int = 0, program: str = "x") -> bytes:
    return line({"v": 1, "type": "step", "program": program, "phase": phase, "run": run})


def end(records: int) -> bytes:
    return line({"v": 1, "type": "end", "records": records})


UP = (line(HELLO), step("set-up"), EXITED)
DOWN = (step("tear-down"), EXITED, LEFT)


def test_a_program_is_its_set_up_its_runs_and_its_tear_down(tmp_path: Path) -> None:
    lines = (*UP, step("command"), EXITED, step("command", 1), EXITED, *DOWN, end(10))
    report = read_stream(stream(tmp_path, *lines), Asked("model", 1, programs=(TWICE,)))
    assert report.complete and report.left == {"x": 1}
    assert [(of.phase, of.run) for of in report.steps] == [
        ("set-up", 0),
        ("command", 0),
        ("command", 1),
        ("tear-down", 0),
    ]


@pytest.mark.parametrize(
    "steps", [(step("set-up"), FAILED), (*UP[1:], step("command"), FAILED), (*UP[1:], step("command"), EXITED)]
)
def test_after_a_step_that_failed_comes_the_tear_down_and_only_then(tmp_path: Path, steps: tuple[bytes, ...]) -> None:
    lines = (line(HELLO), *steps, *DOWN, end(len(steps) + 4))
    report = read_stream(stream(tmp_path, *lines), Asked("model", 1, programs=(TWICE,)))
    assert report.complete == (FAILED in steps)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ((line(HELLO), step("command")), "agent record 1: it begins x, command 0, which is not the next step"),
        ((line(HELLO), step("set-up", program="y")), "agent record 1: it begins y, set-up 0"),
        ((*UP, step("command"), step("command", 1)), "agent record 4: it begins x, command 1"),
        ((*UP, EXITED), "agent record 3: it reports on a step, but none is running"),
        ((*UP, LEFT), "agent record 3: it says that x is over, which still has steps"),
        ((*UP, end(3)), "agent record 3: the end, where the program x was expected"),
        ((line(HELLO), step("set-up"), FAILED, *DOWN, LEFT), "agent record 6: it says that x is over"),
    ],
)
def test_a_stream_says_of_programs_only_what_comes_next(tmp_path: Path, lines: tuple[bytes, ...], fault: str) -> None:
    report = read_stream(stream(tmp_path, *lines), Asked("model", 1, programs=(TWICE,)))
    assert report.fault is not None and report.fault.startswith(fault)


REPORTED = TWICE.model_copy(update={"report": ("tell",)})
ONE_RUN = (*UP, step("command"), EXITED, step("report"), EXITED)


def test_a_report_comes_after_each_run(tmp_path: Path) -> None:
    lines = (*ONE_RUN, step("command", 1), EXITED, step("report", 1), EXITED, *DOWN, end(14))
    report = read_stream(stream(tmp_path, *lines), Asked("model", 1, programs=(REPORTED,)))
    assert report.complete
    assert [(of.phase, of.run) for of in report.steps] == [
        ("set-up", 0),
        ("command", 0),
        ("report", 0),
        ("command", 1),
        ("report", 1),
        ("tear-down", 0),
    ]


@pytest.mark.parametrize("steps", [(*ONE_RUN[1:-1], FAILED), (*ONE_RUN[1:4], FAILED)])
def test_after_a_report_or_its_run_that_failed_comes_the_tear_down(tmp_path: Path, steps: tuple[bytes, ...]) -> None:
    lines = (line(HELLO), *steps, *DOWN, end(len(steps) + 4))
    assert read_stream(stream(tmp_path, *lines), Asked("model", 1, programs=(REPORTED,))).complete


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ((*UP, step("report")), "agent record 3: it begins x, report 0, which is not the next step"),
        ((*UP, step("command"), step("report")), "agent record 4: it begins x, report 0"),
        ((*UP, step("command"), EXITED, step("command", 1)), "agent record 5: it begins x, command 1"),
        ((*UP, step("command"), EXITED, step("report", 1)), "agent record 5: it begins x, report 1"),
        ((*UP, step("command"), FAILED, step("report")), "agent record 5: it begins x, report 0"),
        ((*UP, step("command"), EXITED, *DOWN), "agent record 5: it begins x, tear-down 0"),
        ((*ONE_RUN, step("report")), "agent record 7: it begins x, report 0"),
    ],
)
def test_a_report_is_only_told_of_after_its_run(tmp_path: Path, lines: tuple[bytes, ...], fault: str) -> None:
    report = read_stream(stream(tmp_path, *lines), Asked("model", 1, programs=(REPORTED,)))
    assert report.fault is not None and report.fault.startswith(fault)


def test_a_report_that_nobody_asked_for_is_a_fault(tmp_path: Path) -> None:
    report = read_stream(stream(tmp_path, *ONE_RUN), Asked("model", 1, programs=(TWICE,)))
    assert report.fault == "agent record 5: it begins x, report 0, which is not the next step"


@pytest.mark.parametrize("busy", [{}, {"busy_user": -1}, {"busy_system": 1 << 63}, {"busy_user": 0.5}])
def test_the_processors_time_is_there_and_a_count(tmp_path: Path, busy: dict[str, float]) -> None:
    times = TIMES | busy if busy else {name: TIMES[name] for name in ("elapsed", "user", "system")}
    exited = line({"v": 1, "type": "exited", "status": 0, **times})
    report = read_stream(stream(tmp_path, *UP[:-1], exited), Asked("model", 1, programs=(TWICE,)))
    assert report.fault is not None and "busy_" in report.fault


MEASURED = TWICE.model_copy(
    update={"measured": CommandBenchmark(benchmark="x-y.request", description="X", operations=10)}
)
REQUEST = BENCHMARK | {"name": "x-y.request", "test": "x"}
TOOK = {"v": 1, "type": "sample", "benchmark": "x-y.request", "iteration": 1, "elapsed": 50, "work": 10}


def test_a_program_that_is_measured_is_a_benchmark_after_those_of_the_tests(tmp_path: Path) -> None:
    lines = (
        *(line(HELLO), line(BENCHMARK), line(SAMPLE), line(REQUEST), step("set-up"), EXITED),
        *(step("command"), EXITED, step("command", 1), EXITED, line(TOOK), *DOWN, end(14)),
    )
    report = read_stream(stream(tmp_path, *lines), replace(ASKED, programs=(MEASURED,)))
    assert report.fault is None and report.complete
    assert [(benchmark.name, benchmark.unit) for benchmark in report.benchmarks] == [
        ("lat_x", "instr"),
        ("x-y.request", "instr"),
    ]
    assert [sample.iteration for sample in report.samples if sample.benchmark == "x-y.request"] == [1]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ((line(HELLO), step("set-up")), "agent record 1: it reports on a program where x-y.request was expected"),
        ((line(HELLO), line(REQUEST | {"unit": "ns"})), "agent record 1: it says unit ns of x-y.request"),
        ((line(HELLO), line(REQUEST), line(TOOK | {"iteration": 2})), "agent record 2: x-y.request iteration 2, of 2"),
    ],
)
def test_what_is_said_of_a_program_that_is_measured_was_asked_for(
    tmp_path: Path, lines: tuple[bytes, ...], fault: str
) -> None:
    report = read_stream(stream(tmp_path, *lines), Asked("model", 1, programs=(MEASURED,)))
    assert report.fault is not None and report.fault.startswith(fault)


def test_what_a_benchmark_is_comes_from_the_catalogue(tmp_path: Path) -> None:
    assert read_stream(stream(tmp_path, *WHOLE), ASKED).benchmarks == ASKED.benchmarks


@pytest.mark.parametrize(
    ("words", "kept"),
    [("a\0b", "a\\x00b"), ("\x1b[31mred\u202e\n", "red\\u202e"), ("\0" * LONGEST_TEXT, "\\x00" * (LONGEST_TEXT // 4))],
)
def test_the_words_of_a_guest_may_be_shown_and_stored(tmp_path: Path, words: str, kept: str) -> None:
    lines = (
        line(HELLO | {"kernel": words, "agent": words}),
        WHOLE[1],
        BROKEN.replace(b'"no"', json.dumps(words).encode()),
    )
    report = read_stream(stream(tmp_path, *lines), ASKED)
    assert report.hello
    assert {report.hello.kernel, report.hello.agent, report.broken["lat_x"]} == {kept}


@pytest.mark.parametrize("unit", ["instr", "MB/s"])
@pytest.mark.parametrize("elapsed", [1, 2**63 - 1])
@pytest.mark.parametrize("work", [1, 2**63 - 1])
def test_every_sample_that_is_read_has_a_value_with_a_logarithm(
    tmp_path: Path, unit: str, elapsed: int, work: int
) -> None:
    better = "lower" if unit == "instr" else "higher"
    benchmark = ASKED.benchmarks[0].model_copy(update={"unit": unit, "direction": better})
    declared, sample = BENCHMARK | {"unit": unit, "direction": better}, SAMPLE | {"elapsed": elapsed, "work": work}
    report = read_stream(stream(tmp_path, line(HELLO), *map(line, (declared, sample))), Asked("model", 1, (benchmark,)))
    [read] = report.samples
    assert read.usable
    assert 1e-19 < value(read, benchmark) < 1e22


def many(benchmarks: int, iterations: int) -> tuple[Asked, Iterator[bytes]]:
    """A job, and all that may be said to it."""
    names = [f"lat_x.{number}" for number in range(benchmarks)]
    known = tuple(ASKED.benchmarks[0].model_copy(update={"name": name}) for name in names)

    def lines() -> Iterator[bytes]:
        yield line(HELLO)
        for name in names:
            yield line(BENCHMARK | {"name": name, "description": "\0" * LONGEST_TEXT})
            for iteration in range(iterations):
                yield line(
                    SAMPLE | {"benchmark": name, "iteration": iteration, "elapsed": 2**63 - 1, "work": 2**63 - 1}
                )
            for kind in ("unsupported", "broken"):
                yield line({"v": 1, "type": kind, "benchmark": name, "reason": "\0" * LONGEST_TEXT})

    return Asked("model", iterations, known), lines()


def test_the_largest_stream_that_a_job_allows_takes_little_memory(tmp_path: Path) -> None:
    """All benchmarks of the agent: an experiment may ask for 20 times as many iterations, which take 24 MB."""
    asked, lines = many(benchmarks=34, iterations=50)
    path = tmp_path / "stream.jsonl"
    with path.open("wb") as file:
        file.writelines(lines)
    tracemalloc.start()
    report = read_stream(path, asked)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(report.samples) == 1700 and report.fault is None
    assert peak < 1000 * 1700 + 1_000_000
    with path.open("ab") as file:
        file.writelines([line(SAMPLE | {"benchmark": "lat_x.0", "iteration": 50})] * 2)
    assert (read_stream(path, asked).fault or "").endswith("lat_x.0 iteration 50, of 50 that were requested")
