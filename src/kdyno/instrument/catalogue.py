"""What the agent can be asked to do: `kdyno-agent list --json`. The Rust side is crates/proto/src/catalogue.rs."""

from __future__ import annotations

from typing import Literal

from pydantic import ValidationError

from kdyno.errors import InfrastructureError
from kdyno.frozen import Frozen
from kdyno.lanes import Lane


class OtherAgent(InfrastructureError):
    message = "kdyno can't read what kdyno-agent says of itself: {why}"
    hint = "agent and kdyno must be of one release: `pip install .` in a kdyno checkout installs both"


class CatalogueLane(Frozen):
    """The agent's half of a lane's row; kdyno's is in kdyno.lanes."""

    name: Lane
    cost_unit: str
    bandwidth_unit: str
    iterations: int
    """Samples per benchmark when nobody says how many."""
    icount: bool
    """A job must say the shift of QEMU's -icount."""


class CatalogueBenchmark(Frozen):
    """One quantity that a test measures."""

    name: str
    description: str
    kind: Literal["latency", "bandwidth"]


class CatalogueParam(Frozen):
    """A whole number that a workload may choose."""

    name: str
    description: str
    defaults: dict[Lane, int]
    min: int
    max: int


class CatalogueTest(Frozen):
    """A test."""

    name: str
    suite: str | None
    """A word that stands for this test and others: `lmbench`."""
    description: str
    benchmarks: tuple[CatalogueBenchmark, ...]
    params: tuple[CatalogueParam, ...]


class Catalogue(Frozen):
    """All that this agent can do."""

    v: Literal[1]
    agent: str
    """Its version."""
    port: str
    """The virtio port on which its records leave a guest."""
    job: str
    """Where it finds its job in a guest."""
    lanes: tuple[CatalogueLane, ...]
    tests: tuple[CatalogueTest, ...]


def parse_catalogue(text: str) -> Catalogue:
    """Raises OtherAgent."""
    try:
        return Catalogue.model_validate_json(text)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, wrong["loc"])) or "its list"
        raise OtherAgent(why=f"{place}: {wrong['msg']}") from None
