"""The keys of a machine's facts that rooms below the machines read from records, and their meanings.

Machines write these facts. All other rooms ask a machine for its attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PMU_EVENTS = "pmu_events"
PMU_CLOCK = "pmu_clock"


def recorded_pmu_events(facts: Mapping[str, Any]) -> str | None:
    """Return the events that the emulated PMU of a machine on record counted; None: it had no such PMU."""
    return _text(facts, PMU_EVENTS)


def recorded_pmu_clock(facts: Mapping[str, Any]) -> str | None:
    """Return the clock of the emulated PMU that samples were read in; None: they were read in that of their lane."""
    return _text(facts, PMU_CLOCK)


def _text(facts: Mapping[str, Any], key: str) -> str | None:
    value = facts.get(key)
    return None if value is None else str(value)
