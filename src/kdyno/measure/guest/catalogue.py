"""The agent's abilities: `kdyno-agent list --json`. The Rust side is crates/proto/src/catalogue.rs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import ValidationError

from kdyno.base.errors import InfrastructureError
from kdyno.base.frozen import Frozen
from kdyno.base.lanes import LaneName
from kdyno.base.measurement import Benchmark, Direction
from kdyno.base.mistakes import first_fault

Kind = Literal["latency", "bandwidth"]
BETTER: dict[Kind, Direction] = {"latency": "lower", "bandwidth": "higher"}
"""The better direction by kind; `Kind::direction` of crates/proto is the same for a guest."""


class OtherAgent(InfrastructureError):
    message = "kdyno can't read the catalogue of kdyno-agent: {why}"
    hint = "agent and kdyno must be of one release: `pip install .` in a kdyno checkout installs both"


class CatalogueLane(Frozen):
    """The agent's half of a lane's row; kdyno's is in kdyno.base.lanes."""

    name: LaneName
    cost_unit: str
    bandwidth_unit: str
    iterations: int
    """Samples per benchmark, unless an experiment sets the number."""
    icount: bool
    """Whether a job must give the shift of QEMU's -icount."""


class CatalogueBenchmark(Frozen):
    """One quantity that a test measures."""

    name: str
    description: str
    kind: Kind


class CatalogueParam(Frozen):
    """A whole number that a workload may choose."""

    name: str
    description: str
    defaults: dict[LaneName, int]
    min: int
    max: int


class CatalogueTest(Frozen):
    """A test that the agent can run."""

    name: str
    suite: str | None
    """A name for this test and others: `lmbench`."""
    description: str
    benchmarks: tuple[CatalogueBenchmark, ...]
    params: tuple[CatalogueParam, ...]


class Catalogue(Frozen):
    """Everything that this agent can do."""

    v: Literal[1]
    agent: str
    """The agent's version."""
    port: str
    """The virtio port on which its records leave a guest."""
    job: str
    """The path of its job in a guest."""
    lanes: tuple[CatalogueLane, ...]
    tests: tuple[CatalogueTest, ...]

    def benchmarks(self, tests: Iterable[str], lane: LaneName) -> tuple[Benchmark, ...]:
        """What these tests measure in this lane, in the order in which the agent does."""
        known = {test.name: test for test in self.tests}
        (row,) = (row for row in self.lanes if row.name == lane)
        units = {"latency": row.cost_unit, "bandwidth": row.bandwidth_unit}
        return tuple(
            Benchmark(
                name=benchmark.name,
                test=test,
                unit=units[benchmark.kind],
                direction=BETTER[benchmark.kind],
                description=benchmark.description,
            )
            for test in tests
            for benchmark in known[test].benchmarks
        )


def parse_catalogue(text: str) -> Catalogue:
    """Return the catalogue in a text. Raise OtherAgent."""
    try:
        return Catalogue.model_validate_json(text)
    except ValidationError as error:
        raise OtherAgent(why=first_fault(error, "its list")) from None
