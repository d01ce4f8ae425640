"""The lanes: what a sample's clock counts, and what follows from that. Their rows are data/lanes.json: a new lane is a
row there, which crates/proto/src/lanes.rs reads for the agent, too.

Code asks a lane what it can do, never what it is called.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal


@dataclass(frozen=True)
class Clock:
    """The quantity that samples are read in."""

    title: str
    """The name in reports."""
    cost_unit: str
    """The unit of the cost of an operation."""
    bandwidth_unit: str
    bandwidth_scale: float = 1.0
    """One byte per unit of the clock, in units of a bandwidth: bytes per nanosecond are GB/s."""

    @property
    def units(self) -> tuple[str, str]:
        return self.cost_unit, self.bandwidth_unit

    def unit_for(self, unit: str, other: Clock) -> str:
        """The unit here of what is read in `unit` with the other clock; a unit that is not a clock's stays."""
        return dict(zip(other.units, self.units, strict=True)).get(unit, unit)


@dataclass(frozen=True)
class Lane:
    """One lane, and what it can do."""

    name: str
    """As experiments, jobs and runs on record say it."""
    clock: Clock
    iterations: int
    """Samples per benchmark and boot, unless an experiment says how many. Odd, so that the median is one of them."""
    is_icount: bool
    """The clock is the executed instructions of one emulated CPU: the machine must have QEMU's TCG with -icount, and
    may have the emulated PMU. Otherwise time passes."""
    uses_core_pmu: bool
    """The clock is a counter of the core PMU, the processor's own, not the emulated one, on the CPU that a benchmark is
    bound to: the machine's kernels must drive it, and programs, which run on all CPUs, can't be measured as a whole."""
    is_repeatable: bool
    """The same boot gives the same samples, to the bit, on any host: a boot on record needn't be done again."""
    is_disturbed_by_host: bool
    """Whether work of the host during a boot changes the samples."""
    is_parallel: bool
    """Boots may run at the same time without disturbing each other's samples."""
    first_boot_seconds: float
    """Seconds of a boot on a machine with 2 cores: a guess, used until one is on record."""

    def headline(self, clock: Clock | None = None) -> str:
        """Return the first line of a report; `clock` is the clock of the samples, if it is not the lane's own."""
        return f"lane: {self.name} — {(clock or self.clock).title}"


def _read_lane(title: str, cost_unit: str, bandwidth_unit: str, bandwidth_scale: float, **row: Any) -> Lane:
    return Lane(clock=Clock(title, cost_unit, bandwidth_unit, bandwidth_scale), **row)


ROWS = Path(__file__).parent.parent / "data" / "lanes.json"
"""Not by importlib.resources, whose import takes longer than all else that a list of runs needs of lanes."""
LANES: dict[str, Lane] = {row["name"]: _read_lane(**row) for row in json.loads(ROWS.read_text(encoding="utf-8"))}
DEFAULT_LANE = LANES["model"]
"""Meant where an experiment names none."""
COUNTED_LANE = LANES["model"]
"""The lane in which the emulated PMU counts, and the same boot leaves the same files: of profiles, explanations and
searches."""
TIMED_LANE = LANES["wall"]
"""The lane in which real time passes: of this host itself, of a kernel under KVM, of a shell, of hours under load."""

GUEST_LANES = tuple(lane.name for lane in LANES.values() if not lane.uses_core_pmu)
"""The lanes of guests and of kernels that are processes: these drive no core PMU."""

CLOCKS = [lane.clock for lane in LANES.values()]

if TYPE_CHECKING:
    LaneName = str
    RealTimeLaneName = str
    GuestLaneName = str
    ClockUnit = str
else:
    LaneName = Literal[tuple(LANES)]
    """The name of a lane, for settings and records."""
    RealTimeLaneName = Literal[tuple(name for name, lane in LANES.items() if not lane.is_icount)]
    """The same of one for which no CPU must be emulated."""
    GuestLaneName = Literal[GUEST_LANES]
    """The same of one that guests and kernels that are processes can have."""
    ClockUnit = Literal[(*(clock.cost_unit for clock in CLOCKS), *(clock.bandwidth_unit for clock in CLOCKS))]
    """What a lane's own clock is read in."""

PMU_CLOCKS: dict[str, Clock] = {
    "cycles": Clock(
        "cycles modelled from what the emulated PMU counted in the measured loops, not time", "cycles", "B/cycle"
    ),
    "instructions": Clock(
        "instructions that the emulated PMU counted in the measured loops, not time", "instr", "B/instr"
    ),
}
"""Clocks that samples may be read in instead where the emulated PMU counts; by `pmu_clock` among a machine's facts."""
CORE_CLOCK = Clock("cycles of this host's core", "cycles", "B/cycle")
"""The clock of samples where a kernel is a process that reads the clock of the core itself."""
HOST_CLOCK = Clock("nanoseconds of this host's clock", "ns", "MB/s", 1000.0)
"""The clock of samples where there is no guest."""
BOX_CLOCK = Clock("nanoseconds of the box's clock", "ns", "MB/s", 1000.0)
"""The clock of samples on a box that is reached by ssh."""
