"""The output of kdyno-probe, line by line. The Rust side is crates/probe/src/cli.rs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kdyno.base.frozen import Frozen
from kdyno.measure.cycles.evaluate import Role


class ProbeProgram(Frozen):
    """One program of the probe."""

    program: str
    kind: str
    role: Role


class ListedProgram(ProbeProgram):
    """A program in the list; its place there is its benchmark's index in a PMU record."""

    about: str


class ProgramList(Frozen):
    """The output of `kdyno-probe list --json`."""

    programs: tuple[ListedProgram, ...]


class TimedProgram(ProbeProgram):
    """A line of `kdyno-probe run`."""

    cycles: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    ticks_per_cycle: float
    """Ticks of the time stamp counter in one cycle of the processor."""
    times: int


class MarkedProgram(ProbeProgram):
    """A line of `kdyno-probe run --marked`: it ran between markers, and was not timed."""

    benchmark: int
    times: int


ProgramLine = TimedProgram | MarkedProgram
"""A line of `kdyno-probe run`."""
