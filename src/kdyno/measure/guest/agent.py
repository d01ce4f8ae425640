"""The agent that was installed with this kdyno, and its abilities."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.installed import find_program
from kdyno.base.process import output
from kdyno.measure.guest.catalogue import Catalogue, parse_catalogue
from kdyno.measure.guest.job import Job, TestOrder
from kdyno.measure.guest.stream import Asked

ALL = "all"
"""A name in a workload for every test, as the name of a suite (`lmbench`) is one for the tests of that suite."""


class UnknownTest(UserError):
    message = "the workload names the test {name}, which the agent does not have"
    hint = "did you mean {near}? `kdyno-agent list` shows all"


class UnknownParameter(UserError):
    message = "the workload sets {name} for {test}, which has no such parameter"
    hint = "parameters of {test}: {known}"


def find_agent() -> Path:
    """Return the agent's binary. Raise ProgramMissing."""
    return find_program("kdyno-agent", "a boot")


def catalogue() -> Catalogue:
    """Return this agent's catalogue. Raise ProgramMissing and OtherAgent."""
    agent = find_agent()
    return _catalogue_of(agent, agent.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _catalogue_of(agent: Path, changed_ns: int) -> Catalogue:  # noqa: ARG001
    """Ask an agent for its catalogue, once for as long as its file isn't changed, since every boot needs it."""
    return parse_catalogue(output([agent, "list", "--json"]))


def native_command(agent: Path, order: TestOrder, iterations: int) -> list[str]:
    """Return the command that runs a test on this host; its stream goes to standard output."""
    params = [word for name, value in order.params.items() for word in ("--param", f"{name}={value}")]
    return [str(agent), "run", order.name, "--iterations", str(iterations), "--json", *params]


def expected_records(job: Job) -> Asked:
    """Return the records that the agent may send in a boot with this job."""
    tests = [test.name for test in job.tests]
    benchmarks = catalogue().benchmarks(tests, job.lane) if tests else ()
    return Asked(job.lane, job.iterations, benchmarks, job.programs, job.soak)


def benchmark_names(tests: Iterable[TestOrder]) -> tuple[str, ...]:
    """Return the benchmarks that these tests yield."""
    known = {test.name: test.benchmarks for test in catalogue().tests}
    return tuple(benchmark.name for test in tests for benchmark in known[test.name])


def tsc_khz() -> int:
    """Return how fast this host's time stamp counter runs, in kHz."""
    return int(output([find_agent(), "tsc"]))


def test_orders(tests: Sequence[str], params: Mapping[str, Mapping[str, int]]) -> tuple[TestOrder, ...]:
    """Return the tests that a workload selects, each once, in the agent's order.

    `tests` are names of tests and of suites, and `all`. Raise UnknownTest and UnknownParameter.
    """
    known = {test.name: test for test in catalogue().tests}
    suites = sorted({test.suite for test in known.values() if test.suite})
    for name in tests:
        _require_known(name, [*known, *suites, ALL])
    for name, values in params.items():
        _require_known(name, [*known])
        allowed = [param.name for param in known[name].params]
        for param in values:
            if param not in allowed:
                raise UnknownParameter(name=param, test=name, known=", ".join(allowed) or "none")
    chosen = [test.name for test in known.values() if {test.name, test.suite, ALL} & set(tests)]
    return tuple(TestOrder(name=name, params=dict(params.get(name, {}))) for name in chosen)


def _require_known(name: str, words: Sequence[str]) -> None:
    if name not in words:
        near = difflib.get_close_matches(name, words, n=1, cutoff=0)
        raise UnknownTest(name=name, near=near[0])
