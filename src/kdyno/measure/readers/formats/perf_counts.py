"""The counts that perf stat prints, in whatever form, as series."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import is_printed_number, last_place
from kdyno.measure.readers.units import format_unit


@dataclass(frozen=True)
class Count:
    """One event; numbers with a decimal point."""

    event: str
    value: str
    unit: str = ""
    error: str | None = None
    """Standard error in percent of the value; only -r has it."""
    ran: str = "100"
    """Percentage of the time in which it was counted."""
    command: str | None = None
    """What was counted, if the form says it."""
    runs: int | None = None
    """The number of runs that the value is the mean of, if the form says it."""


def program_output(counts: Iterable[Count]) -> ProgramOutput:
    """Return a benchmark for every event. Notes say which events weren't counted, or not all the time."""
    counts_by_event: dict[tuple[str, str, str | None], list[Count]] = defaultdict(list)
    notes: list[str] = []
    for count in counts:
        if not is_printed_number(count.value):
            notes.append(f"{count.event} was {count.value.strip('<>')}: left out")
            continue
        if float(count.ran) < 100:
            notes.append(f"{count.event} was counted {count.ran} % of the time and scaled up (multiplexing)")
        counts_by_event[count.event, format_unit(count.unit), count.command].append(count)
    series = []
    for (event, unit, command), same in counts_by_event.items():
        numbers = tuple(float(count.value) for count in same)
        error = float(same[0].error) / 100 if len(same) == 1 and same[0].error else None
        # A count is exact, unless it is the mean of several runs.
        exact = error is None and all(number.is_integer() for number in numbers)
        step = 0.0 if exact else max(last_place(count.value) for count in same)
        series.append(
            FileSeries(event, unit, numbers, command=command, error=error, n=same[0].runs if error else None, step=step)
        )
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*dict.fromkeys(notes), *unusable))
