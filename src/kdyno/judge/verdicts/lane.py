"""The kind of a run's samples, in one line."""

from __future__ import annotations

from kdyno.base.lanes import LANES
from kdyno.boot.registry import clock_on_record
from kdyno.store.records import RunRecord


def lane_line(run: RunRecord) -> str:
    return LANES[run.lane].headline(clock_on_record(run.machine, run.lane))
