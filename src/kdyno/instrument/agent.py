"""The agent that was installed with this kdyno, and what it can do."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kdyno.errors import InfrastructureError, UserError
from kdyno.installed import installed, scripts
from kdyno.instrument.job import TestOrder
from kdyno.process import output

ALL = "lmbench"
"""Stands for all tests in a workload."""


class AgentMissing(InfrastructureError):
    message = "the kdyno-agent binary is not installed beside kdyno ({where})"
    hint = "`pip install .` in a kdyno checkout builds and installs it"


class UnknownTest(UserError):
    message = "the workload names the test {name}, which the agent does not have"
    hint = "did you mean {near}? `kdyno-agent list` shows all"


class UnknownParameter(UserError):
    message = "the workload sets {name} for {test}, which has no such parameter"
    hint = "parameters of {test}: {known}"


def find_agent() -> Path:
    """The agent's binary; raises AgentMissing."""
    if found := installed("kdyno-agent"):
        return found
    raise AgentMissing(where=scripts())


def catalogue() -> dict[str, Any]:
    """The agent's tests by name, as `kdyno-agent list --json` describes them."""
    return {test["name"]: test for test in json.loads(output([find_agent(), "list", "--json"]))["tests"]}


def benchmark_count(tests: Iterable[TestOrder]) -> int:
    """How many benchmarks these tests yield."""
    known = catalogue()
    return sum(len(known[test.name]["benchmarks"]) for test in tests)


def tsc_khz() -> int:
    """How fast this host's time stamp counter runs, in kHz."""
    return int(output([find_agent(), "tsc"]))


def test_orders(tests: Sequence[str], params: Mapping[str, Mapping[str, int]]) -> tuple[TestOrder, ...]:
    """The tests that a workload means, each once, in the agent's order.

    Raises UnknownTest and UnknownParameter, before anything is built.
    """
    known = catalogue()
    for name in (*tests, *params):
        if name not in known and name != ALL:
            near = difflib.get_close_matches(name, [*known, ALL], n=1, cutoff=0.3)
            raise UnknownTest(name=name, near=near[0] if near else ALL)
    for test, values in params.items():
        allowed = [param["name"] for param in known[test]["params"]]
        for name in values:
            if name not in allowed:
                raise UnknownParameter(name=name, test=test, known=", ".join(allowed) or "none")
    chosen = known if ALL in tests else [name for name in known if name in tests]
    return tuple(TestOrder(name=name, params=dict(params.get(name, {}))) for name in chosen)
