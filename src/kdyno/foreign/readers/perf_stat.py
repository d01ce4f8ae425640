"""perf stat -x,: value, unit, event, [standard error,] run time, percentage of it, [metric, its unit]; and -j, which
writes the same as one JSON object a line."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from kdyno.foreign.errors import Broken
from kdyno.foreign.readings import ProgramOutput, Series, positive
from kdyno.foreign.sheet import is_printed_number, last_place
from kdyno.foreign.source import Source
from kdyno.foreign.units import shown

TITLE = "perf stat -x output"
_SEPARATORS = ",;\t|:"
_PLACES = ("cpu", "core", "die", "socket", "node")
"""Keys of -j that say where something was counted."""


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


def _pattern(separator: str) -> re.Pattern[str]:
    # Event names may hold the separator: cpu/event=0x3c,umask=0x1/
    s = re.escape(separator)
    return re.compile(
        rf"^\s*(?:(?P<time>\d+\.\d{{9}}){s})?(?:(?P<where>CPU\d+|[SN]\d++[-\w]*+){s}(?:\d+{s}(?=[\d<]))?)?"
        rf"(?P<value>\d+(?:\.\d+)?|<not counted>|<not supported>){s}(?P<unit>[^{s}]*){s}(?P<event>\S.*?)"
        rf"(?:{s}(?P<error>\d+(?:\.\d+)?)%)?{s}\d+{s}(?P<ran>\d+(?:\.\d+)?)(?:{s}(?P<metric>[\d.]*|nan)(?:{s}[^{s}]*)?)?{s}?$"
    )


_PATTERNS = [_pattern(separator) for separator in _SEPARATORS]


def recognises(source: Source) -> bool:
    lines = (line for line in source.head.splitlines() if line.strip() and not line.startswith("#"))
    first = next(lines, "")
    if first.startswith("{"):
        return '"counter-value"' in first
    return any(pattern.match(first) for pattern in _PATTERNS)


def read(source: Source) -> ProgramOutput:
    """Every event is a benchmark. Notes say what wasn't counted, or not all the time. Raises Broken."""
    values: dict[tuple[str, str], list[str]] = defaultdict(list)
    errors: dict[tuple[str, str], float] = {}
    notes: list[str] = []
    for count in _counts(source):
        if count.interval:
            raise Broken(file=source.shown, format=TITLE, why="it has the intervals of -I, which are not replicates")
        if not is_printed_number(count.value):
            notes.append(f"{count.event} was {count.value.strip('<>')}: left out")
            continue
        if float(count.ran) < 100:
            notes.append(f"{count.event} was counted {count.ran} % of the time and scaled up (multiplexing)")
        key = count.event, shown(count.unit)
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
        series.append(Series(event, unit, numbers, error=error, step=step))
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*notes, *unusable))


def _counts(source: Source) -> Iterator[_Count]:
    for line in source.text.splitlines():
        if line.startswith("{"):
            count = _of_json(line, source)
            if count:
                yield count
        elif match := next((row for pattern in _PATTERNS if (row := pattern.match(line))), None):
            yield _Count(
                event=match["event"] + (f", {match['where']}" if match["where"] else ""),
                value=match["value"],
                unit=match["unit"],
                error=match["error"],
                ran=match["ran"],
                interval=match["time"] is not None,
            )


def _of_json(line: str, source: Source) -> _Count | None:
    """What a line of -j says; None for one with nothing but a metric. Raises Broken."""
    try:
        row = json.loads(line, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise Broken(file=source.shown, format=TITLE, why=f"a line is no JSON: {error}") from error
    facts = {name: fact.encode(errors="replace").decode() for name, fact in row.items() if isinstance(fact, str)}
    if not {"counter-value", "event"} <= facts.keys():
        return None
    where = next((f", {'CPU' if name == 'cpu' else ''}{facts[name]}" for name in _PLACES if name in facts), "")
    numbers = {name: facts.get(name, "") for name in ("variance", "pcnt-running")}
    return _Count(
        event=facts["event"] + where,
        value=facts["counter-value"],
        unit=facts.get("unit", ""),
        error=numbers["variance"] if is_printed_number(numbers["variance"]) else None,
        ran=numbers["pcnt-running"] if is_printed_number(numbers["pcnt-running"]) else "100",
        interval="interval" in facts,
    )
