"""The flat profile: what each function did itself, its callees not counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.base.errors import UserError
from kdyno.measure.guest.pmu_parts import CONTEXTS, Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.select import WORK, added


class NoSuchEvent(UserError):
    message = "the record has no event {event}"
    hint = "it has {known}"


@dataclass(frozen=True)
class FlatRow:
    """One function; `share` is its part of all of `event`, 0 to 1."""

    name: str
    address: int
    share: float
    events: dict[str, int]


def flat(
    record: PmuRecord, regions: Sequence[Region], *, event: str = "instructions", contexts: Sequence[str] = WORK
) -> list[FlatRow]:
    """The functions that did some of `event`, most first."""
    column = event_column(record, event)
    functions = added(regions, contexts).functions
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
    """Where in a vector of counts an event is; raises NoSuchEvent."""
    if event not in record.names:
        raise NoSuchEvent(event=event, known=", ".join(record.names))
    return record.names.index(event)


def totals(record: PmuRecord, region: Region) -> dict[str, dict[str, int]]:
    """Context -> event -> count, over all iterations of a region."""
    sums = np.sum([np.zeros((len(CONTEXTS), len(record.names)), np.uint64), *region.iterations.values()], axis=0)
    return {
        context: dict(zip(record.names, row, strict=True)) for context, row in zip(CONTEXTS, sums.tolist(), strict=True)
    }
