"""The lanes, one row each: what a sample's clock counts, and what follows from that.

The agent has its half of the rows in crates/proto/src/lanes.rs; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Lane = Literal["model", "wall"]


@dataclass(frozen=True)
class Clock:
    """The quantity that samples are read in."""

    title: str
    """The name in reports."""
    cost_unit: str
    """The unit of the cost of an operation."""
    bandwidth_unit: str

    def unit_for(self, unit: str, other: Clock) -> str:
        """Return the unit in this clock for a `unit` of the other clock; a unit that belongs to no clock stays."""
        return {other.cost_unit: self.cost_unit, other.bandwidth_unit: self.bandwidth_unit}.get(unit, unit)


@dataclass(frozen=True)
class LaneRow:
    """One lane."""

    name: Lane
    clock: Clock
    iterations: int
    """Samples per benchmark and boot, unless an experiment sets the number. Odd, so that the median is one of them."""
    icount: bool
    """One emulated CPU, whose executed instructions are the clock (QEMU's TCG with -icount); else time passes."""
    disturbed_by_host: bool
    """Whether other work of the host shows in the samples, so that they are valid for this host alone."""
    side_by_side: bool
    """Whether boots may run at the same time without disturbing each other's samples."""
    first_boot_seconds: float
    """Seconds of a boot on a machine with 2 cores: a guess, used until one is on record."""

    def headline(self, clock: Clock | None = None) -> str:
        """Return the first line of a report; `clock` is the clock of the samples, if it is not the lane's own."""
        return f"lane: {self.name} — {(clock or self.clock).title}"


LANES: dict[Lane, LaneRow] = {
    row.name: row
    for row in (
        LaneRow(
            name="model",
            clock=Clock("instructions executed by an emulated CPU (virtual time), not time", "instr", "B/instr"),
            iterations=7,
            icount=True,
            disturbed_by_host=False,
            side_by_side=True,
            first_boot_seconds=6.0,
        ),
        LaneRow(
            name="wall",
            clock=Clock("nanoseconds of the guest's clock", "ns", "MB/s"),
            iterations=11,
            icount=False,
            disturbed_by_host=True,
            side_by_side=False,
            first_boot_seconds=20.0,
        ),
    )
}

PMU_CLOCKS: dict[str, Clock] = {
    "cycles": Clock(
        "cycles modelled from what the emulated PMU counted in the measured loops, not time", "cycles", "B/cycle"
    ),
    "instructions": Clock(
        "instructions that the emulated PMU counted in the measured loops, not time", "instr", "B/instr"
    ),
}
"""Clocks that samples may be read in instead where the emulated PMU counts; by `pmu_clock` among a machine's facts."""
HOST_CLOCK = Clock("nanoseconds of this host's clock", "ns", "MB/s")
"""The clock of samples where there is no guest: on the machine `local`."""
