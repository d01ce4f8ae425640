"""Benchmarks on this host in cycles of its core, with programs in the place of agent and probe."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kdyno.base.installed import ProgramMissing, find_program
from kdyno.base.measurement import Benchmark, Sample
from kdyno.base.process import ToolFailed
from kdyno.base.talk import Talk
from kdyno.boot.host.quiet import NoTmpfs, pin_to_cpu, writable_tmpfs
from kdyno.measure.cycles.measure import ProbeBroken
from kdyno.measure.guest.agent import catalogue
from kdyno.measure.guest.job import TestOrder
from kdyno.understand.validate import native
from kdyno.understand.validate.native import (
    NativeFailed,
    cycles_per_ns,
    cycles_per_unit,
    measure_native,
    model_orders,
)

LATENCY = Benchmark(name="lat_pipe", test="lat_pipe", unit="ns", direction="lower", description="d")
BANDWIDTH = Benchmark(name="bw_pipe", test="bw_pipe", unit="MB/s", direction="higher", description="d")


def samples(*elapsed: int, work: int = 1) -> list[Sample]:
    return [Sample(benchmark="x", iteration=n, elapsed=ns, work=work) for n, ns in enumerate(elapsed)]


def test_the_clock_of_the_core_comes_from_the_shorter_of_two_chains() -> None:
    # 2.3 GHz of the counter, 0.8 ticks a cycle: 2.875 GHz of the core.
    assert cycles_per_ns(2_300_000, 0.9, 0.8) == cycles_per_ns(2_300_000, 0.8, 0.9) == pytest.approx(2.875)


def test_of_the_samples_of_a_pass_the_one_that_a_tenth_undercuts_counts() -> None:
    elapsed = [5_000_000 + 1_000 * number for number in range(11)]
    assert cycles_per_unit(LATENCY, samples(*elapsed, work=1000), 2.0) == pytest.approx(5_001_000 / 1000 * 2.0)
    assert cycles_per_unit(LATENCY, samples(100, 100, 100_000), 3.0) == 300


def test_a_bandwidth_is_told_in_cycles_per_kib() -> None:
    assert cycles_per_unit(BANDWIDTH, samples(500_000, work=1_024_000), 3.0) == pytest.approx(1500)


def test_every_parameter_is_spelled_out_as_the_model_lane_has_it() -> None:
    tests = [test for test in catalogue().tests if test.params]
    for order, test in zip(model_orders(tests), tests, strict=True):
        assert order.name == test.name
        assert order.params == {param.name: param.defaults["model"] for param in test.params}


def test_a_thread_is_pinned_to_one_cpu_and_set_free_again() -> None:
    before, priority = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    with pin_to_cpu():
        assert os.sched_getaffinity(0) == {max(before)}
        assert os.getpriority(os.PRIO_PROCESS, 0) <= priority
    assert (os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)) == (before, priority)


def test_files_lie_in_a_tmpfs_that_can_be_written_to(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nro {tmp_path} tmpfs ro,size=4k 0 0\nx {tmp_path} tmpfs rw 0 0\n")
    assert writable_tmpfs("tests need", mounts) == tmp_path
    mounts.write_text("/dev/vda / ext4 rw 0 0\n")
    with pytest.raises(NoTmpfs, match="none is mounted read-write"):
        writable_tmpfs("tests need", mounts)
    mounts.write_text("x /nowhere tmpfs rw 0 0\n")
    with pytest.raises(NoTmpfs, match="not /nowhere"):
        writable_tmpfs("tests need", mounts)
    with pytest.raises(NoTmpfs, match="No such file"):
        writable_tmpfs("tests need", tmp_path / "nothing")


def stream(*samples_of: int, whole: bool = True) -> str:
    """What an agent says that measured lat_pipe."""
    records: list[dict[str, object]] = [
        {"type": "hello", "agent": "1", "kernel": "6.18", "lane": "wall", "cpus": 1, "init": False},
        {
            "type": "benchmark",
            "name": "lat_pipe",
            "test": "lat_pipe",
            "unit": "ns",
            "direction": "lower",
            "description": "d",
        },
        *(
            {"type": "sample", "benchmark": "lat_pipe", "iteration": number, "elapsed": ns, "work": 10}
            for number, ns in enumerate(samples_of)
        ),
    ]
    if whole:
        records.append({"type": "end", "records": len(records)})
    return "".join(json.dumps({"v": 1, **record}) + "\n" for record in records)


class Tools:
    """Agent and probe, as scripts that say what they are given."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.agent = self.script("agent", f"echo $TMPDIR $* >> {directory}/words; cat {directory}/stream")
        listed = '{"programs":[{"program":"a","kind":"k","role":"fit","about":"x"}]}'
        line = '{"program":"a","kind":"k","role":"fit","cycles":100,"ticks_per_cycle":0.5,"times":1}'
        self.probe = self.script("probe", f"case $1 in list) echo '{listed}';; run) echo '{line}';; esac")
        self.says(stream(*[2_000] * 11))
        patch.setattr(native, "find_agent", lambda: self.agent)
        patch.setattr(native, "find_probe", lambda: self.probe)
        patch.setattr(native, "tsc_khz", lambda: 1_000_000)

    def script(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def says(self, text: str) -> None:
        (self.directory / "stream").write_text(text)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    return Tools(tmp_path, monkeypatch)


def orders() -> tuple[TestOrder, ...]:
    return model_orders([test for test in catalogue().tests if test.name == "lat_pipe"])


def test_every_pass_runs_every_test_and_tells_cycles(tools: Tools) -> None:
    passes = measure_native(orders(), 3, Talk(quiet=True))
    # 1 GHz of the counter at half a tick a cycle is 2 GHz; 2,000 ns are 10 operations.
    assert [(one.cycles, one.ghz) for one in passes] == [({"lat_pipe": 400.0}, 2.0)] * 3
    words = (tools.directory / "words").read_text().splitlines()
    assert len(words) == 3 and " run lat_pipe --iterations 11 --json" in words[0]
    assert words[0].startswith(str(writable_tmpfs("tests need")))


def test_an_agent_that_fails_is_quoted(tools: Tools) -> None:
    tools.says(stream(2_000, whole=False))
    with pytest.raises(NativeFailed, match="lat_pipe failed on this host"):
        measure_native(orders(), 1, Talk(quiet=True))
    tools.script("agent", "echo no clock >&2; exit 3")
    with pytest.raises(NativeFailed, match="no clock") as error:
        measure_native(orders(), 1, Talk(quiet=True))
    assert error.value.exit_code == 3


def test_a_missing_agent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = orders()

    def missing() -> Path:
        return find_program("kdyno-agent-that-is-nowhere", "a boot")

    monkeypatch.setattr(native, "find_agent", missing)
    with pytest.raises(ProgramMissing, match="which is not installed"):
        measure_native(wanted, 1, Talk(quiet=True))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo '{\"programs\":[]}'", "its list has no programs"),
        ('case $1 in list) echo \'{"programs":[{"program":"a","kind":"k","role":"fit","about":"x"}]}\';; esac', "line"),
    ],
)
def test_a_probe_that_makes_no_sense_is_said(tools: Tools, text: str, why: str) -> None:
    tools.script("probe", text)
    with pytest.raises(ProbeBroken, match=why):
        measure_native(orders(), 1, Talk(quiet=True))
    tools.script("probe", "echo no CPU >&2; exit 1")
    with pytest.raises(ToolFailed, match="no CPU"):
        measure_native(orders(), 1, Talk(quiet=True))
