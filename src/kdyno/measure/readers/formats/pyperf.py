"""pyperf JSON: benchmarks[] with runs[]; a run is one process, with warm-ups and values in the unit of its metadata."""

from __future__ import annotations

import statistics

from kdyno.measure.readers import json_values as json
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.source import FileSource

TITLE = "pyperf JSON"
UNITS = {"second": "s", "byte": "B", "integer": ""}


def recognises(source: FileSource) -> bool:
    if not isinstance(source.document, dict):
        return False
    benchmarks = source.document.get("benchmarks", [source.document])
    return (
        isinstance(benchmarks, list)
        and bool(benchmarks)
        and all(isinstance(benchmark, dict) and "runs" in benchmark for benchmark in benchmarks)
    )


def read(source: FileSource) -> ProgramOutput:
    """Read a series from every benchmark, with one value for each process: the median of its values.

    The values of a process share its memory layout and hash seed. Warm-ups and calibration runs (which have no values)
    are left out. Raise Broken.
    """
    try:
        document = json.table(source.document, "the document")
        common = json.table(document.get("metadata", {}), "metadata")
        series, single = [], True
        for row in json.rows(document.get("benchmarks", [document]), "benchmarks"):
            benchmark = json.table(row, "a benchmark")
            runs = [json.table(run, "a run") for run in json.rows(benchmark.get("runs"), "runs")]
            processes = [json.numbers(run["values"], "values") for run in runs if run.get("values")]
            single &= all(len(values) == 1 for values in processes)
            metadata = {**common, **json.table(benchmark.get("metadata", {}), "metadata")}
            unit = json.text(metadata.get("unit", "second"), "unit")
            name = json.text(metadata.get("name", "benchmark"), "name")
            series.append(FileSeries(name, UNITS.get(unit, unit), tuple(map(statistics.median, processes))))
    except ValueError as error:
        raise Broken(file=source.shown, format=TITLE, why=json.why(error)) from error
    notes = () if single else ("each process of pyperf counts once, with the median of its values",)
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*notes, *unusable))
