"""stress-ng: the lines of --metrics or --metrics-brief, or the file of --yaml."""

from __future__ import annotations

import re
from collections import defaultdict

from kdyno.foreign.series import Reading, Series, positive
from kdyno.foreign.source import Source

FORMAT = "stress-ng output"
UNIT = "bogo ops/s"
_NUMBER = r"\d+(?:\.\d+)?"
_HEAD = re.compile(r"^stress-ng:\s+(?:\d\d:\d\d:\d\d\.\d+\s+)?(?:info|metrc):\s+\[\d+\]\s+(.*)$")
_ROW = re.compile(rf"^(\S+)\s+\d+\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+({_NUMBER})\s+{_NUMBER}(?:\s|$)")
_STRESSOR = re.compile(r"^\s*-\s+stressor:\s*['\"]?([^'\"\s]+)")
_RATE = re.compile(rf"^\s*bogo-ops-per-second-real-time:\s*({_NUMBER})\s*$")


def looks_like(head: str) -> bool:
    return "stress-ng: " in head or "bogo-ops-per-second-real-time" in head


def read(source: Source) -> Reading:
    """Bogo operations per second of real time; runs that follow one another in a file are further values."""
    found: dict[str, list[float]] = defaultdict(list)
    stressor = ""
    for line in source.text.splitlines():
        if said := _HEAD.match(line):
            if row := _ROW.match(said[1]):
                found[row[1]].append(float(row[2]))
        elif named := _STRESSOR.match(line):
            stressor = named[1]
        elif (rate := _RATE.match(line)) and stressor:
            found[stressor].append(float(rate[1]))
    series = [Series(name, UNIT, tuple(values), direction="higher") for name, values in found.items()]
    return Reading(*positive(series))
