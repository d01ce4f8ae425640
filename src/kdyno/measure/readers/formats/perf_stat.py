"""perf stat -x,: value, unit, event, [standard error,] run time, percentage of it, [metric, its unit]; and -j, which
writes one JSON object a line with the same data.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from kdyno.measure.readers.errors import Broken, CommaTwice, ForPeople, Intervals
from kdyno.measure.readers.json_values import not_json, require_moderate
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import is_printed_number, last_place
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.units import format_unit

TITLE = "perf stat -x output"
_FOR_PEOPLE = re.compile(r"\s*Performance counter stats for ")
_SEPARATORS = ",;\t|:"
LEAST_FIELDS = 5
"""Fields of the line of a count: value, unit, event, run time, percentage of it."""
_PLACES = ("cpu", "core", "die", "socket", "node")
"""Keys of -j that say where an event was counted."""


@dataclass(frozen=True)
class _Count:
    event: str
    value: str
    unit: str
    error: str | None
    """Standard error in percent of the value; only -r has it."""
    ran: str
    """Percentage of the time in which it was counted."""
    interval: bool


def _pattern(separator: str, decimal: str) -> re.Pattern[str]:
    """Return the pattern of a line, given its separator and its decimal mark."""
    s, d = re.escape(separator), re.escape(decimal)
    # Event names may hold the separator: sched:sched_switch, and between slashes cpu/event=0x3c,umask=0x1/
    event = r"\S.*?" if separator == ":" else rf"[^{s}/\s][^{s}/]*(?:/[^/]*/[^{s}]*)?"
    return re.compile(
        rf"^\s*(?:(?P<time>\d+{d}\d{{9}}){s})?(?:(?P<where>CPU\d+|[SN]\d++[-\w]*+){s}(?:\d+{s}(?=[\d<]))?)?"
        rf"(?P<value>\d+(?:{d}\d+)?|<not counted>|<not supported>){s}(?P<unit>[^{s}\d][^{s}]*|){s}(?P<event>{event})"
        rf"(?:{s}(?P<error>\d+(?:{d}\d+)?)%)?{s}\d+{s}(?P<ran>\d+(?:{d}\d+)?)"
        rf"(?:{s}(?P<metric>\d*(?:{d}\d+)?|-?nan|inf)(?:{s}[^{s}]*)?)?{s}?$"
    )


_PATTERNS = [_pattern(separator, decimal) for separator in _SEPARATORS for decimal in ".," if separator != decimal]
_COMMAS = _pattern(",", ",")
"""Decimal commas between commas: lines have two or three more fields, and the parts can't be matched."""
_HUNDRED = re.compile(r",\d{1,3},\d\d(?:,|$)")
"""A share of the time with a decimal comma; perf prints it with two decimals, and no metric without."""


def _has_fields(line: str) -> bool:
    """Return whether a line is divided as a count is: not what the program itself printed there, nor a metric alone."""
    return line[0] not in _SEPARATORS and any(line.count(separator) >= LEAST_FIELDS - 1 for separator in _SEPARATORS)


def _has_commas(line: str) -> bool:
    """Return whether a line whose fields are separated by commas has decimal commas as well."""
    return bool(_COMMAS.match(line)) and (bool(_HUNDRED.search(line)) or not _match_line(line))


def _match_line(line: str) -> re.Match[str] | None:
    return next((row for pattern in _PATTERNS if (row := pattern.match(line))), None)


def recognises(source: FileSource) -> bool:
    """Return whether the first line is one of -x or -j. Raise ForPeople for the output without them."""
    lines = [line for line in source.head.splitlines() if line.strip() and not line.startswith("#")]
    if lines and _FOR_PEOPLE.match(lines[0]):
        raise ForPeople(file=source.shown)
    first = next((line for line in lines if line.startswith("{") or _has_fields(line)), "")
    if first.startswith("{"):
        return '"counter-value"' in first
    return bool(_match_line(first) or _COMMAS.match(first))


def read(source: FileSource) -> ProgramOutput:
    """Read a benchmark from every event. Notes say which events weren't counted, or not all the time. Raise Broken and
    CommaTwice.
    """
    values: dict[tuple[str, str], list[str]] = defaultdict(list)
    errors: dict[tuple[str, str], float] = {}
    notes: list[str] = []
    for count in _counts(source):
        if count.interval:
            raise Intervals(file=source.shown)
        if not is_printed_number(count.value):
            notes.append(f"{count.event} was {count.value.strip('<>')}: left out")
            continue
        if float(count.ran) < 100:
            notes.append(f"{count.event} was counted {count.ran} % of the time and scaled up (multiplexing)")
        key = count.event, format_unit(count.unit)
        values[key].append(count.value)
        if count.error:
            errors[key] = float(count.error) / 100
    series = []
    for (event, unit), texts in values.items():
        numbers = tuple(map(float, texts))
        error = errors.get((event, unit)) if len(numbers) == 1 else None
        # A count is exact, unless it is the mean of several runs.
        exact = error is None and all(number.is_integer() for number in numbers)
        step = 0.0 if exact else max(map(last_place, texts))
        series.append(FileSeries(event, unit, numbers, error=error, step=step))
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*notes, *unusable))


def _counts(source: FileSource) -> Iterator[_Count]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if line.startswith("{"):
            count = _count_from_json(line, number, source)
            if count:
                yield count
        elif _has_commas(line):
            raise CommaTwice(file=source.shown, line=number)
        elif match := _match_line(line):
            yield _Count(
                event=match["event"] + (f", {match['where']}" if match["where"] else ""),
                value=match["value"].replace(",", "."),
                unit=match["unit"],
                error=match["error"] and match["error"].replace(",", "."),
                ran=match["ran"].replace(",", "."),
                interval=match["time"] is not None,
            )


def _count_from_json(line: str, number: int, source: FileSource) -> _Count | None:
    """Return the count in a line of -j; None for a line with only a metric. Raise Broken."""
    try:
        require_moderate(line)
        row = json.loads(line, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise Broken(file=source.shown, format=TITLE, why=f"line {number}: {not_json(error)}") from error
    facts = {name: fact.encode(errors="replace").decode() for name, fact in row.items() if isinstance(fact, str)}
    if not {"counter-value", "event"} <= facts.keys():
        return None
    place = next((f", {'CPU' if name == 'cpu' else ''}{facts[name]}" for name in _PLACES if name in facts), "")
    numbers = {name: facts.get(name, "") for name in ("variance", "pcnt-running")}
    return _Count(
        event=facts["event"] + place,
        value=facts["counter-value"],
        unit=facts.get("unit", ""),
        error=numbers["variance"] if is_printed_number(numbers["variance"]) else None,
        ran=numbers["pcnt-running"] if is_printed_number(numbers["pcnt-running"]) else "100",
        interval="interval" in facts,
    )
