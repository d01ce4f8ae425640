"""iperf, version 2: the rate of each run's whole time, of all streams together; its intervals are parts of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from kdyno.measure.readers.readings import ProgramOutput, positive, printed_series
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.units import format_unit

TITLE = "iperf 2 output"
_START = re.compile(r"^(?P<side>Client connecting to|Server listening on) .*\b(?P<protocol>TCP|UDP) port \d+")
_RATE = re.compile(
    r"^\[ *(?P<stream>SUM|\d+)\] +(?P<begin>\d+\.\d+) *- *(?P<end>\d+\.\d+) +sec +\S+ \w+ +"
    r"(?P<rate>\d+(?:\.\d+)?) (?P<unit>[KMG]?(?:bits|Bytes)/sec)"
)


@dataclass(frozen=True)
class _Interval:
    stream: str
    seconds: float
    rate: str
    unit: str


def recognises(source: FileSource) -> bool:
    return any(map(_START.match, source.head.splitlines()))


def read(source: FileSource) -> ProgramOutput:
    values: dict[tuple[str, str], list[str]] = defaultdict(list)
    for protocol, intervals in _runs(source):
        sums = [interval for interval in intervals if interval.stream == "SUM"]
        streams = {interval.stream for interval in intervals} - {"SUM"}
        longest = max((interval.seconds for interval in sums or intervals), default=0.0)
        whole = [interval for interval in sums or intervals if interval.seconds == longest]
        if not whole or (len(streams) > 1 and not sums):
            continue
        last = whole[-1]  # of datagrams, the server's report, which comes last
        name = f"iperf {protocol}, {len(streams)} stream{'' if len(streams) == 1 else 's'}"
        values[name, format_unit(last.unit)].append(last.rate)
    series = [printed_series(name, unit, texts, "higher") for (name, unit), texts in values.items()]
    return ProgramOutput(*positive(series))


def _runs(source: FileSource) -> Iterator[tuple[str, list[_Interval]]]:
    """Yield (protocol, intervals that begin at 0) of every run."""
    protocol, intervals = "", list[_Interval]()
    for line in source.text.splitlines():
        if start := _START.match(line):
            yield protocol, intervals
            protocol, intervals = start["protocol"], []
        elif (match := _RATE.match(line)) and float(match["begin"]) == 0:
            intervals.append(_Interval(match["stream"], float(match["end"]), match["rate"], match["unit"]))
    yield protocol, intervals
