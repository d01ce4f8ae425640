"""A report on each run: what is read of it, and what those of kdyno's own servers make of real output."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kdyno.base.measurement import Sample
from kdyno.measure.guest.job import Job
from kdyno.measure.guest.loads import uses_loads
from kdyno.measure.guest.steps import MOST_STDOUT, StepReport
from kdyno.measure.guest.stream import AgentReport
from kdyno.measure.workload.base import NotRead
from kdyno.measure.workload.definition import definition
from kdyno.measure.workload.metrics import Output
from kdyno.measure.workload.reading import read_all
from tests.unit.measure.test_workload_programs import METRIC, SMALL, counted, small, step, used

DATA = Path(__file__).parents[2] / "data" / "servers"

REPORTED = SMALL.replace('set_up = "true"', 'report = "echo rate 5"')


def test_a_report_is_a_step_of_the_program(tmp_path: Path) -> None:
    program = definition(str(small(tmp_path, REPORTED))).program({}, "model")
    assert program.report == ("sh", "-euc", "echo rate 5")
    assert program.steps == (program.command, program.report)
    assert uses_loads([program.model_copy(update={"report": ("sh", "-c", "kdyno-loads list")})])
    job = Job(lane="wall", iterations=1, programs=(program,))
    assert b'"report":["sh","-euc","echo rate 5"]' in job.encode()


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


def carried_out(workload: str, directory: Path) -> subprocess.CompletedProcess[bytes]:
    """The report of one of kdyno's own workloads, with a directory in the place of /tmp."""
    script = definition(workload).report or ""
    return subprocess.run(["sh", "-euc", script.replace("/tmp", str(directory))], capture_output=True, check=False)


def numbers(workload: str, directory: Path) -> dict[str, float]:
    """What is read of the report alone."""
    done = carried_out(workload, directory)
    assert done.returncode == 0, done.stderr
    samples, _not_there = read_all(definition(workload).metrics, [step(stdout=done.stdout, system=0.0)], None)
    return {sample.benchmark: sample.value for sample in samples if sample.value is not None}


def test_percentiles_of_redis_are_those_of_its_summary_and_the_first_step_from_99_9_on(tmp_path: Path) -> None:
    shutil.copyfile(DATA / "redis-benchmark.txt", tmp_path / "kdyno-redis.said")
    assert numbers("redis", tmp_path) == {
        "set": 84388.19,
        "set_p50": 0.071,
        "set_p99": 2.247,
        "set_p999": 4.631,
        "get": 152671.77,
        "get_p50": 0.071,
        "get_p99": 0.143,
        "get_p999": 1.311,
    }


def logged(directory: Path, name: str, *times: object) -> None:
    """A log of pgbench: client, number, time in microseconds, script, and when that was."""
    (directory / "pg").mkdir(exist_ok=True)
    lines = [f"0 {number} {time} 0 1700000000 {number}\n" for number, time in enumerate(times)]
    (directory / "pg" / f"transactions.{name}").write_text("".join(lines))


@pytest.mark.parametrize(
    ("transactions", "expected"), [(1000, (500, 990, 999)), (10, (5, 10, 10)), (1, (1, 1, 1)), (1001, (501, 991, 1000))]
)
def test_percentiles_of_pgbench_are_nearest_ranks_over_all_of_its_logs(
    tmp_path: Path, transactions: int, expected: tuple[float, ...]
) -> None:
    logged(tmp_path, "77", *range(transactions, 0, -2))
    logged(tmp_path, "77.1", *range(transactions - 1, 0, -2))
    assert numbers("pgbench", tmp_path) == dict(zip(("p50", "p99", "p999"), expected, strict=True))
    assert [path.name for path in (tmp_path / "pg").iterdir()] == ["sorted"]


def test_a_run_of_pgbench_in_which_a_transaction_failed_has_no_percentiles(tmp_path: Path) -> None:
    logged(tmp_path, "77", 5, "failed", 7)
    done = carried_out("pgbench", tmp_path)
    assert (done.returncode, done.stderr) == (1, b"transactions failed or were skipped\n")


def test_a_run_of_a_web_server_in_which_a_request_failed_is_none(tmp_path: Path) -> None:
    (tmp_path / "nginx").mkdir()
    (tmp_path / "nginx" / "wrk").write_text("p50 = 5 us\nerrors = 1\n")
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "ab").write_text("Failed requests:        3\nRequests per second:    10.0 [#/sec] (mean)\n")
    for workload in ("nginx", "web"):
        done = carried_out(workload, tmp_path)
        assert (done.returncode, done.stderr) == (1, b"requests failed\n")


def test_the_rate_of_web_is_that_of_all_its_requests_together(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "access.log").write_text("GET /\n")
    (tmp_path / "web" / "ab").write_text(
        "Requests per second:    10 [#/sec] (mean)\nRequests per second:    30 [#/sec]\n"
    )
    assert numbers("web", tmp_path) == {"rate": 15}
    assert (tmp_path / "web" / "access.log").read_text() == ""
