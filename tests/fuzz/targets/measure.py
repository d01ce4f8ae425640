"""Readers of foreign bytes: what guests send, PMU records, workloads and families."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kdyno.base.lanes import CORE_CLOCK
from kdyno.measure.cycles.family import read_family
from kdyno.measure.cycles.instruction_costs import read_costs
from kdyno.measure.guest.agent import catalogue
from kdyno.measure.guest.counters import read_snapshots
from kdyno.measure.guest.job import Program
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.measure.guest.pmu_write import encode
from kdyno.measure.guest.soak import MOST_FAILURES, MOST_TAIL
from kdyno.measure.guest.stream import Asked, read_stream
from kdyno.measure.paths.output import RequestedPaths, read_output
from kdyno.measure.paths.table import paths
from kdyno.measure.workload.definition import definition, own_names, own_text
from kdyno.profile.merge import Read, merge
from kdyno.runs.soak.growth import blocks_of, slopes
from tests.fuzz.check import LARGEST, Target
from tests.fuzz.inputs import DATA, SOURCE, files, is_shown_as_it_is
from tests.unit import pmu_specimen, soak_specimen
from tests.unit.measure.test_instrument_counters import WHOLE as COUNTED
from tests.unit.measure.test_paths import whole

HI = Program(name="hi", set_up=("true",), command=("echo", "hi"), report=("true",), tear_down=("true",), runs=2)


@cache
def everything() -> Asked:
    """What the recorded boots were asked, and a command."""
    return Asked("model", 7, catalogue().benchmarks([test.name for test in catalogue().tests], "model"), (HI,))


def stream(path: Path) -> None:
    report = read_stream(path, everything())
    assert not (report.complete and report.fault)
    assert all(sample.usable for sample in report.samples)
    texts = [report.fault or "", *report.unsupported.values(), *report.broken.values()]
    texts += [report.hello.kernel, report.hello.agent] if report.hello else []
    texts += [benchmark.description for benchmark in report.benchmarks]
    assert not any("\0" in text for text in texts)


@cache
def streams() -> Sequence[bytes]:
    recorded = (DATA / "recording" / "baseline" / "0" / "stream.jsonl").read_bytes().splitlines(keepends=True)
    short = b"".join(recorded[:20]) + b'{"v":1,"type":"end","records":20}\n'
    hello = recorded[0]
    step, exited = (
        b'{"v":1,"type":"step","program":"hi","phase":"set-up","run":0}\n',
        b'{"v":1,"type":"exited","status":0,"elapsed":5,"user":2,"system":1,"busy_user":4,"busy_system":3}\n',
    )
    chunk = hello + step + b'{"v":1,"type":"output","stream":"stdout","hex":"6869"}\n' + exited
    reasons = recorded[1] + b'{"v":1,"type":"unsupported","benchmark":"bw_file_rd.io_only","reason":"no"}\n'
    reasons += b'{"v":1,"type":"broken","benchmark":"bw_file_rd.io_only","reason":"x"}\n'
    return short, chunk + reasons + b'{"v":1,"type":"end","records":5}\n', b"".join(recorded)[:LARGEST]


def soak(path: Path) -> None:
    report = read_stream(path, soak_specimen.ASKED)
    of_soak = report.soak
    assert of_soak and set(of_soak.tallies) <= set(soak_specimen.LOADS)
    assert len(of_soak.failures) <= MOST_FAILURES * len(soak_specimen.LOADS)
    assert all(len(failure.tail) <= MOST_TAIL for failure in of_soak.failures)
    slopes(blocks_of(of_soak.looks, soak_specimen.SOAK.seconds))


def soaks() -> Sequence[bytes]:
    return (soak_specimen.stream(*soak_specimen.sound()), soak_specimen.stream(soak_specimen.failed(), whole=False))


def pmu_body(path: Path) -> None:
    """The numbers behind a sound header: what a change of the compressed bytes never reaches."""
    body = path.read_bytes()
    header = {**PMU_HEADER, "bytes": len(body)}
    path.write_bytes(pmu_specimen.encoded(header, body))
    read_pmu_record(path)


def pmu_merged(path: Path) -> None:
    """What is made of a record, whatever it holds, can be read again."""
    pmu_body(path)
    record = read_pmu_record(path)
    path.write_bytes(encode(merge([Read(path, record), Read(path, record)])))
    assert read_pmu_record(path).merged == 2


def pmu_header() -> dict[str, Any]:
    _, header, _ = pmu_specimen.encode(pmu_specimen.specimen()).split(b"\n", 2)
    return dict(json.loads(header))


def workload(path: Path) -> None:
    found = definition(str(path))
    assert found.metrics and all(len(name) < 200 for name in (*found.metrics, *found.parameters))


def workloads() -> Sequence[bytes]:
    return [own_text(name).encode() for name in own_names()]


def counters(path: Path) -> None:
    """What a guest sends of its kernel's counters."""
    items = read_snapshots(path).items
    assert items and len({len(history) for history in items.values()}) == 1


PATHS = ("pipe_ping", "tmpfs_read_64")


def path_output(path: Path) -> None:
    """What a kernel that is a process prints of its paths."""
    wanted = [paths()[name] for name in PATHS]
    for is_timed in (True, False):
        output = read_output(path, RequestedPaths("wall", CORE_CLOCK, wanted, 3, is_timed=is_timed))
        report = output.report
        assert not (report.complete and report.fault)
        assert {sample.benchmark for sample in report.samples} <= set(PATHS)
        assert all(sample.usable for sample in report.samples)
        texts = [report.fault or "", *report.broken.values(), report.hello.kernel if report.hello else ""]
        assert all(is_shown_as_it_is(text) for text in texts)


def path_outputs() -> Sequence[bytes]:
    lines = whole(*PATHS)
    failed = [lines[0], f"kdyno-path-error {PATHS[0]} -12", *lines[4:]]
    return ["".join(f"{line}\n" for line in each).encode() for each in (lines, failed)]


PMU_HEADER = pmu_header()
COSTS = SOURCE.parents[1] / "docs" / "results" / "instructions-emeraldrapids.toml"
TARGETS = (
    Target("stream", stream, streams, (b'"type":"sample"', b'"iteration":', b'"records":', b'"v":2')),
    Target("soak", soak, soaks, (b'"type":"tally"', b'"progress":"over"', b'"rounds":', b'"kb":{', b'"elapsed":')),
    Target("pmu", read_pmu_record, lambda: [pmu_specimen.encode(pmu_specimen.specimen())], examples=500),
    Target("pmu-merged", pmu_merged, lambda: [pmu_specimen.encode_body(pmu_specimen.specimen())], examples=200),
    Target("pmu-body", pmu_body, lambda: [pmu_specimen.encode_body(pmu_specimen.specimen())], examples=500),
    Target("counters", counters, lambda: [COUNTED], (b'"snapshot":1', b'"bytes":', b'"snapshots":')),
    Target("paths", path_output, path_outputs, (b"kdyno-path-error ", b"kdyno-paths done\n"), file="stream.txt"),
    Target("workload", workload, workloads, (b"[metrics.a]\n", b"pattern = ", b"[unpack]\n"), file="workload.toml"),
    Target("family", read_family, files(*sorted((SOURCE / "data" / "families").glob("*.toml")))),
    Target("costs", read_costs, files(COSTS), (b"[instruction.a]\n", b"better = ", b"cycles = ")),
)  # fmt: skip
