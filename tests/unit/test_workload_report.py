"""A report on each run, and what its processors did: what is asked of the agent, and what is read of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.instrument.job import Job
from kdyno.instrument.loads import uses_loads
from kdyno.instrument.steps import MOST_STDOUT, StepReport
from kdyno.instrument.stream import AgentReport
from kdyno.measurement import Sample
from kdyno.workload.base import NotRead
from kdyno.workload.definition import definition
from kdyno.workload.metrics import Output
from tests.unit.test_workload_programs import METRIC, SMALL, counted, small, step, used

REPORTED = SMALL.replace('set_up = "true"', 'report = "echo rate 5"')


def test_a_report_is_a_step_of_the_program(tmp_path: Path) -> None:
    program = definition(str(small(tmp_path, REPORTED))).program({}, "model")
    assert program.report == ("sh", "-euc", "echo rate 5")
    assert program.steps == (program.command, program.report)
    assert uses_loads([program.model_copy(update={"report": ("sh", "-c", "kdyno-loads list")})])
    job = Job(lane="wall", iterations=1, programs=(program,))
    assert b'"report":["sh","-euc","echo rate 5"]' in job.encoded()


def test_the_numbers_of_a_run_are_in_what_it_wrote_and_in_what_its_report_wrote(tmp_path: Path) -> None:
    steps = (
        *(step(stdout=b"without an end"), step("report", stdout=b"rate 5\n", system=7.0)),
        *(step(run=1, stdout=b"rate 6\n"), step("report", 1, stdout=b"")),
    )
    report = used(tmp_path).read(AgentReport(steps=steps))
    values = [(sample.benchmark, sample.value) for sample in report.samples]
    assert values == [("small.rate", 5), ("small.rate", 6), ("small.system", 0.25), ("small.system", 0.25)]


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (step("report", stdout=b"rate 6\n"), "matches more than once: in line 1 and in line 2"),
        (step("report", stdout_is_cut=True), f"more than {MOST_STDOUT:,} bytes"),
    ],
)
def test_a_number_that_a_report_says_again_or_that_it_floods_is_broken(
    tmp_path: Path, report: StepReport, why: str
) -> None:
    read = used(tmp_path).read(AgentReport(steps=(step(), report)))
    assert why in read.broken["small.rate"] and {sample.benchmark for sample in read.samples} == {"small.system"}


def test_a_report_that_failed_breaks_its_workload(tmp_path: Path) -> None:
    sample = Sample(benchmark="small.request", iteration=0, elapsed=50, work=10)
    steps = (step(), step("report", status=1, stderr=b"requests failed\n"))
    with pytest.raises(NotRead, match=r"small\.rate: its report ended with status 1: requests failed"):
        counted(tmp_path).read(AgentReport(steps=steps, samples=(sample,)))


SHARE = {"share": "kernel"}


@pytest.mark.parametrize(("user", "system", "percent"), [(3.0, 1.0, 25), (0.0, 0.01, 100)])
def test_a_share_is_the_kernels_part_of_what_the_processors_did(user: float, system: float, percent: float) -> None:
    metric = METRIC.validate_python(SHARE)
    assert (metric.unit, metric.direction) == ("%", "lower")
    assert metric.number(Output(step(busy_user=user, busy_system=system))) == percent


@pytest.mark.parametrize("user", [0.0, 1.0])
def test_a_share_without_a_tick_in_the_kernel_is_broken(user: float) -> None:
    with pytest.raises(NotRead, match="/proc/stat counted no time of the kernel while the command ran"):
        METRIC.validate_python(SHARE).number(Output(step(busy_user=user)))
