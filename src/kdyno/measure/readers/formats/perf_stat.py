"""perf stat -x,: value, unit, event, [standard error,] run time, percentage of it, [metric, its unit]; and -j, which
writes one JSON object a line with the same data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from kdyno.measure.readers.errors import Broken, CommaTwice, Intervals
from kdyno.measure.readers.formats.perf_counts import Count, program_output
from kdyno.measure.readers.json_values import not_json, require_moderate
from kdyno.measure.readers.readings import ProgramOutput
from kdyno.measure.readers.sheet import is_printed_number
from kdyno.measure.readers.source import FileSource

TITLE = "perf stat -x output"
_SEPARATORS = ",;\t|:"
LEAST_FIELDS = 5
"""Fields of the line of a count: value, unit, event, run time, percentage of it."""
_PLACES = ("cpu", "core", "die", "socket", "node")
"""Keys of -j that say where an event was counted."""


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
    """Return whether the first line is one of -x or -j."""
    lines = [line for line in source.head.splitlines() if line.strip() and not line.startswith("#")]
    first = next((line for line in lines if line.startswith("{") or _has_fields(line)), "")
    if first.startswith("{"):
        return '"counter-value"' in first
    return bool(_match_line(first) or _COMMAS.match(first))


def read(source: FileSource) -> ProgramOutput:
    """Read a benchmark from every event. Raise Broken, CommaTwice and Intervals."""
    return program_output(_counts(source))


def _counts(source: FileSource) -> Iterator[Count]:
    """Yield all counts. Raise Broken, CommaTwice and Intervals."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if line.startswith("{"):
            count = _count_from_json(line, number, source)
            if count:
                yield count
        elif _has_commas(line):
            raise CommaTwice(file=source.shown, line=number)
        elif match := _match_line(line):
            if match["time"] is not None:
                raise Intervals(file=source.shown)
            yield Count(
                event=match["event"] + (f", {match['where']}" if match["where"] else ""),
                value=match["value"].replace(",", "."),
                unit=match["unit"],
                error=match["error"] and match["error"].replace(",", "."),
                ran=match["ran"].replace(",", "."),
            )


def _count_from_json(line: str, number: int, source: FileSource) -> Count | None:
    """Return the count in a line of -j; None for a line with only a metric. Raise Broken and Intervals."""
    try:
        require_moderate(line)
        row = json.loads(line, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise Broken(file=source.shown, format=TITLE, why=f"line {number}: {not_json(error)}") from error
    facts = {name: fact.encode(errors="replace").decode() for name, fact in row.items() if isinstance(fact, str)}
    if not {"counter-value", "event"} <= facts.keys():
        return None
    if "interval" in facts:
        raise Intervals(file=source.shown)
    place = next((f", {'CPU' if name == 'cpu' else ''}{facts[name]}" for name in _PLACES if name in facts), "")
    numbers = {name: facts.get(name, "") for name in ("variance", "pcnt-running")}
    return Count(
        event=facts["event"] + place,
        value=facts["counter-value"],
        unit=facts.get("unit", ""),
        error=numbers["variance"] if is_printed_number(numbers["variance"]) else None,
        ran=numbers["pcnt-running"] if is_printed_number(numbers["pcnt-running"]) else "100",
    )
