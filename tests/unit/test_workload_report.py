"""A report on each run: what is asked of the agent, and what is read of it."""

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
from tests.unit.test_workload_programs import SMALL, counted, small, step, used

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
