"""One trial of a workload: everything that its steps wrote, and what was read of it. Nothing goes on record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kdyno.base.frozen import Frozen
from kdyno.base.measurement import value
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.base.text import clean
from kdyno.boot.base import BootOrder, MachineSettings
from kdyno.boot.registry import open_machine
from kdyno.measure.guest.steps import StepReport
from kdyno.measure.workload.definition import Definition, Value
from kdyno.measure.workload.programs import ProgramsWorkload
from kdyno.runs.one_boot import measured


class TriedStep(Frozen):
    """One step."""

    phase: str
    run: int
    status: int | None
    """Exit status; null: it never ended."""
    elapsed: float
    """Seconds, as are the next two."""
    user: float
    system: float
    output: str
    """What it wrote to standard output, and the end of what it wrote to standard error: without control characters."""


class TriedMetric(Frozen):
    """One metric: a value of each run, or why there is none."""

    unit: str
    direction: str
    values: tuple[float, ...]
    broken: str | None = None


class WorkloadTrial(Frozen):
    """`kdyno workload try --json`."""

    workload: str
    lane: str
    ok: bool
    """Whether every metric has its values."""
    reason: str
    """Why the round or boot failed; empty if it came to its end."""
    left_processes: int
    """How many processes it left behind, which were killed."""
    steps: tuple[TriedStep, ...]
    metrics: dict[str, TriedMetric]


def try_workload(
    workload: Definition,
    values: Mapping[str, Value],
    settings: MachineSettings,
    kernel: Path | None,
    *,
    words: tuple[str, ...] = (),
    state: State,
    talk: Talk,
) -> WorkloadTrial:
    """Carry the workload out once: in a guest of this kernel, or on this host. Raises what machines raise."""
    config = ProgramsWorkload(use=(workload.name,), parameters={workload.name: dict(values)}, definitions=(workload,))
    needs = config.needs()
    machine = open_machine(settings.at_least(needs, config.cpus()))
    if kernel:
        machine.require_options(kernel, "stream")
    machine.provide(needs, state, talk)
    about = machine.describe()
    part = config.part(about.lane)
    job = about.job(part.iterations, programs=part.programs)
    with state.scratch("one") as scratch:
        end = measured(machine.boot(BootOrder(workload.name, kernel, words, job, 1, scratch)), config)
    report = end.report
    metrics = {
        benchmark.name.removeprefix(f"{workload.name}."): TriedMetric(
            unit=benchmark.unit,
            direction=benchmark.direction,
            values=tuple(value(sample, benchmark) for sample in report.samples if sample.benchmark == benchmark.name),
            broken=report.broken.get(benchmark.name),
        )
        for benchmark in report.benchmarks
    }
    return WorkloadTrial(
        workload=workload.name,
        lane=about.lane,
        ok=end.status == "ok" and all(metric.values for metric in metrics.values()),
        reason="" if end.status == "ok" else end.reason,
        left_processes=report.left.get(workload.name, 0),
        steps=tuple(map(_step, report.steps)),
        metrics=metrics,
    )


def _step(step: StepReport) -> TriedStep:
    written = (step.stdout + step.stderr).decode(errors="replace")
    return TriedStep(
        phase=step.phase,
        run=step.run,
        status=step.status,
        elapsed=step.elapsed,
        user=step.user,
        system=step.system,
        output="\n".join(clean(line) for line in written.splitlines()),
    )
