"""The kind of a run's samples, in one line."""

from __future__ import annotations

from kdyno.base.lanes import HOST_CLOCK, LANES, PMU_CLOCKS
from kdyno.store.records import RunRecord


def lane_line(run: RunRecord) -> str:
    if run.machine.get("type") == "local":
        return LANES[run.lane].headline(HOST_CLOCK)
    return LANES[run.lane].headline(PMU_CLOCKS.get(run.machine.get("pmu_clock", "")))
