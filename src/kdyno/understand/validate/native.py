"""Runs the agent's benchmarks on this host, in cycles of its core.

The agent reports nanoseconds. The cycles of a nanosecond are not known beforehand: the clock of the core varies, and
the time-stamp counter doesn't follow it. So each test runs between two short chains of dependent additions, which take
a cycle each; `kdyno-probe` times one beside each of its runs. Everything stays on one CPU, since another may have
another speed.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from kdyno.base.errors import InfrastructureError
from kdyno.base.lanes import COUNTED_LANE, TIMED_LANE
from kdyno.base.measurement import Benchmark, Sample
from kdyno.base.process import output, spawn
from kdyno.base.talk import Talk
from kdyno.boot.host.quiet import pin_to_cpu, writable_tmpfs
from kdyno.measure.cycles.measure import ProbeBroken, find_probe
from kdyno.measure.cycles.probe import ProgramList, TimedProgram
from kdyno.measure.guest.agent import expected_records, find_agent, native_command, tsc_khz
from kdyno.measure.guest.catalogue import CatalogueTest
from kdyno.measure.guest.job import Job, TestOrder
from kdyno.measure.guest.stream import AgentReport, read_stream

BYTES_OF_KIB = 1024
FEW = 0.1
"""The quantile of a pass's samples that counts, as in the calibration on programs. Noise nearly always lengthens a
sample. If it lengthens the chain of additions instead, the sample seems too short."""


class NativeFailed(InfrastructureError):
    message = "the agent's test {test} failed on this host: {why}"
    hint = "run it by hand: kdyno-agent run {test}"


@dataclass(frozen=True)
class NativePass:
    """One pass of all tests."""

    cycles: Mapping[str, float]
    """By benchmark, the cycles of the core per operation or KiB."""
    ghz: float
    """The clock of the core in GHz: the median over the tests."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Benchmarks that this kernel didn't run, with the reasons."""


def model_orders(tests: Sequence[CatalogueTest]) -> tuple[TestOrder, ...]:
    """Return these tests with all parameters of the model lane, so that both sides do the same work."""
    return tuple(
        TestOrder(name=test.name, params={param.name: param.defaults[COUNTED_LANE.name] for param in test.params})
        for test in tests
    )


def unit_of(benchmark: Benchmark) -> str:
    """Return the unit of work: KiB for bandwidths, operations for other benchmarks."""
    return "KiB" if benchmark.direction == "higher" else "op"


def cycles_per_unit(benchmark: Benchmark, samples: Sequence[Sample], cycles_per_ns: float) -> float:
    """Return cycles per operation or KiB: the quantile FEW of these samples, which are in nanoseconds. Pure."""
    amounts = [sample.elapsed / sample.work for sample in samples if sample.elapsed and sample.work]
    low = float(np.quantile(amounts, FEW, method="lower"))
    return low * cycles_per_ns * (BYTES_OF_KIB if unit_of(benchmark) == "KiB" else 1)


def cycles_per_ns(tsc_khz: int, ticks_before: float, ticks_after: float) -> float:
    """Return the clock of the core in GHz, from that of the counter and the ticks of a cycle in both chains. Pure.

    The shorter chain counts: a disturbance lengthens a chain.
    """
    return tsc_khz / 1e6 / min(ticks_before, ticks_after)


def measure_native(orders: Sequence[TestOrder], passes: int, talk: Talk) -> list[NativePass]:
    """Run all tests, `passes` times one after the other, on one CPU. Raises NativeFailed, NoTmpfs, ProgramMissing."""
    agent, probe, place = find_agent(), find_probe(), writable_tmpfs("files of the tests need")
    khz = tsc_khz()
    chain = _any_program(probe)
    native_passes: list[NativePass] = []
    with talk.working("timing on this CPU") as advance, pin_to_cpu():
        for number in range(passes):
            cycles, clocks, absent = dict[str, float](), list[float](), dict[str, str]()
            ticks_before = _ticks_per_cycle(probe, chain)
            for count, order in enumerate(orders):
                advance(number * len(orders) + count, passes * len(orders), order.name)
                report = _run(agent, order, place)
                ticks_after = _ticks_per_cycle(probe, chain)
                clock = cycles_per_ns(khz, ticks_before, ticks_after)
                ticks_before = ticks_after
                clocks.append(clock)
                for benchmark in report.benchmarks:
                    samples = [sample for sample in report.samples if sample.benchmark == benchmark.name]
                    if samples:
                        cycles[benchmark.name] = cycles_per_unit(benchmark, samples, clock)
                absent |= {**report.unsupported, **report.broken}
            native_passes.append(NativePass(cycles, statistics.median(clocks), absent))
    return native_passes


def _run(agent: Path, order: TestOrder, place: Path) -> AgentReport:
    job = Job(lane=TIMED_LANE.name, iterations=TIMED_LANE.iterations, tests=(order,))
    command = native_command(agent, order, job.iterations)
    with tempfile.TemporaryDirectory(prefix="kdyno-") as directory:
        stream, error_log = Path(directory) / "stream.jsonl", Path(directory) / "said"
        with (
            stream.open("wb") as out,
            error_log.open("wb") as errors,
            spawn(command, stdout=out, stderr=errors, env={"TMPDIR": str(place)}) as child,
        ):
            status = child.wait()
        report = read_stream(stream, expected_records(job))
        if not report.complete:
            reason = error_log.read_text(encoding="utf-8", errors="replace").strip() or report.fault
            raise NativeFailed(test=order.name, why=reason or f"exit status {status}")
    return report


def _any_program(probe: Path) -> str:
    """Return the name of any program of the probe: only the timing of the chain is used."""
    try:
        return ProgramList.model_validate_json(output([probe, "list", "--json"])).programs[0].program
    except (ValidationError, IndexError):
        raise ProbeBroken(why="its list has no programs") from None


def _ticks_per_cycle(probe: Path, program: str) -> float:
    command: list[str | Path] = [probe, "run", program, "--times", "1"]
    try:
        ticks = TimedProgram.model_validate_json(output(command)).ticks_per_cycle
    except ValidationError:
        raise ProbeBroken(why="it has no line for a program") from None
    if ticks <= 0:
        raise ProbeBroken(why="a cycle takes no time by its count")
    return ticks
