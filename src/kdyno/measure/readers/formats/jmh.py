"""JMH's -rf json: a list of benchmarks, with the raw scores of each iteration of each fork."""

from __future__ import annotations

import statistics

from kdyno.base.measurement import Direction
from kdyno.measure.readers import json_values as json
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import ONE_PROCESS, FileSeries, ProgramOutput, positive
from kdyno.measure.readers.source import FileSource

TITLE = "JMH JSON"
METRIC = "primaryMetric"
THROUGHPUT = "thrpt"
"""The only mode whose score is a rate; those of the others are times."""


def recognises(source: FileSource) -> bool:
    rows = source.document
    return isinstance(rows, list) and bool(rows) and all(isinstance(row, dict) and METRIC in row for row in rows)


def read(source: FileSource) -> ProgramOutput:
    """Read a series from every benchmark, with one value for each fork: the median of its iterations. Of a single fork
    the iterations are read.

    The iterations of a fork share a process. Raise Broken.
    """
    notes: dict[str, None] = {}
    series = []
    try:
        for row in json.rows(source.document, "the document"):
            benchmark = json.table(row, "a benchmark")
            metric = json.table(benchmark.get(METRIC), METRIC)
            forks = [json.numbers(fork, "a fork of rawData") for fork in json.rows(metric.get("rawData"), "rawData")]
            forks = [scores for scores in forks if scores]
            direction: Direction = "higher" if benchmark.get("mode") == THROUGHPUT else "lower"
            unit = json.text(metric.get("scoreUnit"), "scoreUnit")
            if len(forks) == 1:
                values = forks[0]
                notes[ONE_PROCESS] = None
            else:
                values = tuple(map(statistics.median, forks))
                notes["each fork of JMH counts once, with the median of its iterations"] = None
            series.append(FileSeries(_name(benchmark), unit, values, direction=direction))
    except ValueError as error:
        raise Broken(file=source.shown, format=TITLE, why=json.why(error)) from error
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*notes, *unusable))


def _name(benchmark: dict[str, object]) -> str:
    """Return the benchmark with its parameters, as `Pipe.read (size=4096)`."""
    name = json.text(benchmark.get("benchmark"), "benchmark")
    parameters = json.table(benchmark.get("params", {}), "params")
    listed = ", ".join(f"{key}={json.text(value, key)}" for key, value in parameters.items())
    return f"{name} ({listed})" if listed else name
