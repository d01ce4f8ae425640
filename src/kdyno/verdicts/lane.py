"""What the samples of a run are, in one line."""

from __future__ import annotations

from kdyno.measurement import Lane
from kdyno.store.records import RunRecord

LANES: dict[Lane, str] = {
    "model": "instructions executed by an emulated CPU (virtual time), not time",
    "wall": "nanoseconds of the guest's clock",
}

PMU_CLOCKS = {
    "cycles": "cycles modelled from what the emulated PMU counted in the measured loops, not time",
    "instructions": "instructions that the emulated PMU counted in the measured loops, not time",
}
"""By `pmu_clock` among the facts of the machine."""


def lane_line(run: RunRecord) -> str:
    return f"lane: {run.lane} — {PMU_CLOCKS.get(run.machine.get('pmu_clock', ''), LANES[run.lane])}"
