"""stress-ng: the lines of --metrics or --metrics-brief, or the file of --yaml."""

from __future__ import annotations

import re
from collections import defaultdict

from kdyno.measure.readers.readings import ProgramOutput, positive, printed_series
from kdyno.measure.readers.source import FileSource

TITLE = "stress-ng output"
UNIT = "bogo ops/s"
_NUMBER = r"\d+(?:\.\d+)?"
_HEAD = re.compile(r"^stress-ng:\s+(?:\d\d:\d\d:\d\d\.\d+\s+)?(?:info|metrc):\s+\[\d+\]\s+(.*)$")
_ROW = re.compile(rf"^(\S+)\s+\d+\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+({_NUMBER})\s+{_NUMBER}(?:\s|$)")
_STRESSOR = re.compile(r"^\s*-\s+stressor:\s*['\"]?([^'\"\s]+)")
_RATE = re.compile(rf"^\s*bogo-ops-per-second-real-time:\s*({_NUMBER})\s*$")


def recognises(source: FileSource) -> bool:
    return "stress-ng: " in source.head or "bogo-ops-per-second-real-time" in source.head


def read(source: FileSource) -> ProgramOutput:
    """Read bogo operations per second of real time; every further run in a file is a further value."""
    rates: dict[str, list[str]] = defaultdict(list)
    stressor = ""
    for line in source.text.splitlines():
        if message := _HEAD.match(line):
            if row := _ROW.match(message[1]):
                rates[row[1]].append(row[2])
        elif name := _STRESSOR.match(line):
            stressor = name[1]
        elif (rate := _RATE.match(line)) and stressor:
            rates[stressor].append(rate[1])
    series = [printed_series(benchmark, UNIT, texts, "higher") for benchmark, texts in rates.items()]
    return ProgramOutput(*positive(series))
