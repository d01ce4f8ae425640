"""schbench: the percentile of its latencies that it marks with `*`, and its average of requests per second."""

from __future__ import annotations

import re
from collections import defaultdict

from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive, printed_series
from kdyno.measure.readers.source import FileSource

TITLE = "schbench output"
_SECTION = re.compile(r"^(?P<name>\w[\w ]*?) percentiles \((?P<unit>\w+)\)(?: runtime (?P<seconds>\d+) \(s\))?")
_MARKED = re.compile(r"^\s*\*\s*(?P<percent>\d+(?:\.\d+)?)th: (?P<value>\d+)\b")
_AVERAGE = re.compile(r"^average rps: (?P<value>\d+(?:\.\d+)?)")
_RATE = "requests/s"


def recognises(source: FileSource) -> bool:
    return any(_SECTION.match(line) for line in source.head.splitlines())


def read(source: FileSource) -> ProgramOutput:
    """Read one value of each kind from every run. The reports during a run (`-i`) are about a part of it, and have a
    shorter run time than the next: only the last report of a run counts.
    """
    values: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    name = unit = ""
    seconds = 0
    for line in source.text.splitlines():
        if section := _SECTION.match(line):
            name, unit, seconds = section["name"], section["unit"], int(section["seconds"] or 0)
        elif marked := _MARKED.match(line):
            if unit != "requests":  # its average is read
                values[f"schbench {name}, {float(marked['percent']):g}th percentile", unit].append(
                    (seconds, marked["value"])
                )
        elif average := _AVERAGE.match(line):
            values["schbench average", _RATE].append((seconds, average["value"]))
    series = [_last_of_runs(benchmark, unit, reports) for (benchmark, unit), reports in values.items()]
    return ProgramOutput(*positive(series))


def _last_of_runs(benchmark: str, unit: str, reports: list[tuple[int, str]]) -> FileSeries:
    """Return the series of the reports after which the run time doesn't grow."""
    next_seconds = [seconds for seconds, _ in reports[1:]] + [0]
    texts = [text for (seconds, text), later in zip(reports, next_seconds, strict=True) if seconds >= later]
    return printed_series(benchmark, unit, texts, "higher" if unit == _RATE else "lower")
