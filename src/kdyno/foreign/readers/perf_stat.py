"""perf stat -x,: value, unit, event, [standard error,] run time, percentage of it, [metric, its unit]."""

from __future__ import annotations

import re
from collections import defaultdict

from kdyno.foreign.errors import Broken
from kdyno.foreign.readings import ProgramOutput, Series, positive
from kdyno.foreign.source import Source
from kdyno.foreign.units import shown

TITLE = "perf stat -x output"
_SEPARATORS = ",;\t|:"


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
    return any(pattern.match(first) for pattern in _PATTERNS)


def read(source: Source) -> ProgramOutput:
    """Every event is a benchmark. Notes say what wasn't counted, or not all the time. Raises Broken."""
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    errors: dict[tuple[str, str], float] = {}
    notes: list[str] = []
    for line in source.text.splitlines():
        match = next((row for pattern in _PATTERNS if (row := pattern.match(line))), None)
        if match is None:
            continue
        if match["time"]:
            raise Broken(file=source.shown, format=TITLE, why="it has the intervals of -I, which are not replicates")
        event = match["event"] + (f", {match['where']}" if match["where"] else "")
        if match["value"].startswith("<"):
            notes.append(f"{event} was {match['value'].strip('<>')}: left out")
            continue
        if float(match["ran"]) < 100:
            notes.append(f"{event} was counted {match['ran']} % of the time and scaled up (multiplexing)")
        key = event, shown(match["unit"])
        values[key].append(float(match["value"]))
        if match["error"]:
            errors[key] = float(match["error"]) / 100
    series = [
        Series(event, unit, tuple(counts), error=errors.get((event, unit)) if len(counts) == 1 else None)
        for (event, unit), counts in values.items()
    ]
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*notes, *unusable))
