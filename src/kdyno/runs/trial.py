"""One trial of a workload: the output of its steps, and the values read from it. Nothing is recorded."""

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
from kdyno.measure.workload.named import workload_of
from kdyno.runs.one_boot import attach_samples


class TriedStep(Frozen):
    """One step of a workload."""

    phase: str
    run: int
    status: int | None
    """The exit status; null: the step never ended."""
    elapsed: float
    """The time in seconds, as in `user` and `system`."""
    user: float
    system: float
    output: str
    """The standard output and the end of the standard error, without control characters."""


class TriedMetric(Frozen):
    """One metric: its value in each run, or why it has no values."""

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
    """The reason for the failure of the round or the boot; empty if it came to its end."""
    left_processes: int
    """The number of processes that the workload left running, and that were killed."""
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
    """Carry out the workload once: in a guest of this kernel, or on this host. Raises what machines raise."""
    config = workload_of(workload, values)
    needs = config.needs()
    machine = open_machine(settings.at_least(needs, config.cpus()))
    if kernel:
        machine.require_options(kernel, "stream")
    machine.provide(needs, state, talk)
    about = machine.describe()
    part = config.part(about.lane)
    job = about.job(part.iterations, programs=part.programs)
    with state.scratch("one") as scratch:
        end = attach_samples(machine.boot(BootOrder(workload.name, kernel, words, job, 1, scratch)), config)
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
    output = (step.stdout + step.stderr).decode(errors="replace")
    return TriedStep(
        phase=step.phase,
        run=step.run,
        status=step.status,
        elapsed=step.elapsed,
        user=step.user,
        system=step.system,
        output="\n".join(clean(line) for line in output.splitlines()),
    )
