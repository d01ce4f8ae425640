"""pytest-benchmark's JSON: benchmarks[] with stats, in seconds, and the times of rounds if --benchmark-save-data was
given.
"""

from __future__ import annotations

from kdyno.measure.readers import json_values as json
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import ONE_PROCESS, FileSeries, ProgramOutput, positive
from kdyno.measure.readers.source import FileSource

TITLE = "pytest-benchmark JSON"


def recognises(source: FileSource) -> bool:
    benchmarks = source.document.get("benchmarks") if isinstance(source.document, dict) else None
    return isinstance(benchmarks, list) and any(
        isinstance(entry, dict) and isinstance(entry.get("stats"), dict) for entry in benchmarks
    )


def read(source: FileSource) -> ProgramOutput:
    """Read the rounds of every benchmark; if they weren't kept, mean, standard deviation and number. Raise Broken."""
    series = []
    try:
        for row in json.rows(json.table(source.document, "the document").get("benchmarks"), "benchmarks"):
            entry = json.table(row, "a benchmark")
            name = json.text(entry.get("fullname", entry.get("name")), "a name")
            stats = json.table(entry.get("stats"), "stats")
            if times := json.numbers(stats.get("data") or [], "data"):
                series.append(FileSeries(name, "s", times))
                continue
            mean, deviation = (json.number(stats.get(key), key) for key in ("mean", "stddev"))
            rounds = json.whole(stats.get("rounds"), "rounds")
            known = mean > 0 and deviation > 0 and rounds > 1
            series.append(FileSeries(name, "s", (mean,), sd=deviation / mean if known else None, n=rounds))
    except ValueError as error:
        raise Broken(file=source.shown, format=TITLE, why=json.why(error)) from error
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*unusable, ONE_PROCESS))
