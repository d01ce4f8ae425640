"""The flat profile: the events of each function itself, without its callees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.base.errors import UserError
from kdyno.measure.guest.pmu_parts import CONTEXTS, Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.select import WORK, sum_contexts


class NoSuchEvent(UserError):
    message = "the record has no event {event}"
    hint = "choose one of {known}"


@dataclass(frozen=True)
class FlatRow:
    """One function; `share` is its part of all counts of the event, 0 to 1."""

    name: str
    address: int
    share: float
    events: dict[str, int]


def flat(
    record: PmuRecord, regions: Sequence[Region], *, event: str = "instructions", contexts: Sequence[str] = WORK
) -> list[FlatRow]:
    """Return the functions with a count of `event`, the largest first."""
    column = event_column(record, event)
    functions = sum_contexts(regions, contexts).functions
    total = sum(int(events[column]) for events in functions.values())
    rows = [
        FlatRow(
            name=record.functions[index].name,
            address=record.functions[index].address,
            share=int(events[column]) / total,
            events=dict(zip(record.names, map(int, events), strict=True)),
        )
        for index, events in functions.items()
        if events[column]
    ]
    return sorted(rows, key=lambda row: (-row.events[event], row.address))


def event_column(record: PmuRecord, event: str) -> int:
    """Return the index of an event in a vector of counts. Raises NoSuchEvent."""
    if event not in record.names:
        raise NoSuchEvent(event=event, known=", ".join(record.names))
    return record.names.index(event)


def totals(record: PmuRecord, region: Region) -> dict[str, dict[str, int]]:
    """Return the count by event by context, over all iterations of a region."""
    sums = np.sum([np.zeros((len(CONTEXTS), len(record.names)), np.uint64), *region.iterations.values()], axis=0)
    return {
        context: dict(zip(record.names, row, strict=True)) for context, row in zip(CONTEXTS, sums.tolist(), strict=True)
    }
