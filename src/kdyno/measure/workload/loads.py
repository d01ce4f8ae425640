"""What kdyno-loads prints with --json. The Rust side is crates/loads/src/outcome.rs."""

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
    """With `.processN` at its end: of one of several processes."""
    value: Value
    """The median of `values`."""
    values: Annotated[tuple[Value, ...], Field(min_length=1)]
    """One of each repetition."""
    unit: str
    direction: Direction
    """Which is better."""


class LoadFaults(Frozen):
    """Page faults of the timed parts, over all repetitions and processes."""

    minor: Number
    major: Number


class LoadPages(Frozen):
    """What large pages of one size served."""

    faults: Number
    """Page faults that got one."""
    fallbacks: Number
    """Page faults that should have got one and got smaller pages: none was free."""


class LoadPageSize(Frozen):
    """A size of large pages, by the kernel's own statistics, which are of the whole system."""

    size_kb: Number
    initialisation: LoadPages
    timed: LoadPages
    """Over all repetitions."""


class LoadMemory(Frozen):
    """Bytes, from /proc/self/smaps_rollup while the arrays were mapped; of all processes."""

    resident: Number
    anonymous: Number
    anon_huge_pages: Number
    """Of the anonymous memory, what one entry of a page table maps 2 MB of."""
    file_huge_pages: Number
    shared_huge_pages: Number


class LoadOutcome(Frozen):
    """`kdyno-loads LOAD --json`: one line."""

    name: str
    parameters: dict[str, Number | str]
    """All of them, also those that were left at their defaults."""
    init_seconds: Annotated[Value, Field(ge=0)]
    """Making the data, first touch included; of several processes the longest."""
    metrics: Annotated[tuple[LoadMetric, ...], Field(min_length=1)]
    facts: dict[str, bool | Number | Value | str | None]
    """What is known of the result, and doesn't count as better or worse; None: the kernel doesn't say."""
    faults: LoadFaults
    large_pages: tuple[LoadPageSize, ...] | None
    """The sizes of which there were any; None where the kernel doesn't say, and for several processes."""
    memory: LoadMemory | None
    """None where the kernel doesn't say."""
    verified: Literal[True]
    """A wrong result is exit code 1, and no outcome."""
