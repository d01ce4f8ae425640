"""pgbench: one report for each run, which ends in `tps = 3519.491157 (without initial connection time)`."""

from __future__ import annotations

import re
from collections import defaultdict

from kdyno.measure.readers.readings import ProgramOutput, positive, printed_series
from kdyno.measure.readers.source import FileSource

TITLE = "pgbench output"
_RUN = re.compile(r"^transaction type: (?:<builtin: )?([^>]*+)>?$")
_FACTS = {
    "scaling factor": "scale",
    "query mode": "",
    "number of clients": "clients",
    "number of threads": "threads",
}
"""The circumstances that are part of the benchmark's name, and their words in it."""
_TPS = re.compile(r"^tps = (\d+(?:\.\d+)?) \((without initial|including|excluding)")
_LATENCY = re.compile(r"^latency average = (\d+(?:\.\d+)?) ms$")
_FAILED = re.compile(r"^number of failed transactions: ([1-9]\d*+) ")


def recognises(source: FileSource) -> bool:
    return "\ntransaction type: " in f"\n{source.head}" and "scaling factor: " in source.head


def read(source: FileSource) -> ProgramOutput:
    """Read transactions per second; or the latency of runs that -R held at a rate. Every further run is a further
    value.

    Without -R the average latency is clients by transactions per second, and so the same measurement.
    """
    printed: dict[tuple[str, str], list[str]] = defaultdict(list)
    notes: list[str] = []
    run: dict[str, str] = {}
    for line in map(str.strip, source.text.splitlines()):
        name, _, fact = line.partition(": ")
        if match := _RUN.match(line):
            _close(run, printed)
            run = {"type": match[1].rpartition("/")[2]}
        elif name in _FACTS and run:
            run[name] = fact
        elif match := _LATENCY.match(line):
            run["latency"] = match[1]
        elif line.startswith("rate limit schedule lag: "):
            run["limited"] = "-R"
        elif match := _TPS.match(line):
            # Up to version 13 there are two lines, of which the second excludes the time for connecting.
            run["tps"] = match[1]
        elif match := _FAILED.match(line):
            notes.append(f"{match[1]} transactions failed in a run")
        elif line.startswith("progress: "):
            notes.append("the lines of progress (-P) weren't read: parts of one run are not replicates")
    _close(run, printed)
    series = [
        printed_series(benchmark, unit, values, "lower" if unit == "ms" else "higher")
        for (benchmark, unit), values in printed.items()
    ]
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*dict.fromkeys(notes), *unusable))


def _close(run: dict[str, str], printed: dict[tuple[str, str], list[str]]) -> None:
    """Add the measurement of a run, if its report is whole."""
    unit, value = ("ms", "latency") if "limited" in run else ("tps", "tps")
    if "type" not in run or value not in run:
        return
    facts = [f"{called} {run[name]}".strip() for name, called in _FACTS.items() if name in run]
    benchmark = ", ".join((f"pgbench {run['type']}", *facts, *(("latency at -R",) if unit == "ms" else ())))
    printed[benchmark, unit].append(run[value])
