"""The output of kdyno-loads with --json. The Rust side is crates/loads/src/outcome.rs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kdyno.base.frozen import Frozen
from kdyno.base.measurement import Direction

Value = Annotated[float, Field(allow_inf_nan=False)]
Number = Annotated[int, Field(ge=0, lt=2**63)]


class LoadMetric(Frozen):
    """One number of a load, over all repetitions."""

    name: str
    """The name; with `.processN` at its end for one of several processes."""
    value: Value
    """The median of `values`."""
    values: Annotated[tuple[Value, ...], Field(min_length=1)]
    """One value of each repetition."""
    unit: str
    direction: Direction
    """The better direction."""


class LoadFaults(Frozen):
    """Page faults of the timed parts, over all repetitions and processes."""

    minor: Number
    major: Number


class LoadPages(Frozen):
    """Large pages of one size."""

    faults: Number
    """Page faults that got one."""
    fallbacks: Number
    """Page faults that should have got one and got smaller pages, because none was free."""


class LoadPageSize(Frozen):
    """A size of large pages, by the kernel's own statistics, which are of the whole system."""

    size_kb: Number
    initialisation: LoadPages
    timed: LoadPages
    """Pages over all repetitions."""


class LoadMemory(Frozen):
    """Bytes, from /proc/self/smaps_rollup while the arrays were mapped; of all processes."""

    resident: Number
    anonymous: Number
    anon_huge_pages: Number
    """Anonymous memory in pages of 2 MB, which one entry of a page table maps."""
    file_huge_pages: Number
    shared_huge_pages: Number


class LoadOutcome(Frozen):
    """`kdyno-loads LOAD --json`: one line."""

    name: str
    parameters: dict[str, Number | str]
    """All of them, also those that kept their defaults."""
    init_seconds: Annotated[Value, Field(ge=0)]
    """Seconds for making the data, first touch included; of several processes the longest."""
    metrics: Annotated[tuple[LoadMetric, ...], Field(min_length=1)]
    facts: dict[str, bool | Number | Value | str | None]
    """Known facts about the result that don't count as better or worse; None: the kernel doesn't report them."""
    faults: LoadFaults
    large_pages: tuple[LoadPageSize, ...] | None
    """The sizes that had any; None if the kernel doesn't report them, and for several processes."""
    memory: LoadMemory | None
    """None if the kernel doesn't report it."""
    verified: Literal[True]
    """Always true: a wrong result is exit code 1, and no outcome."""
