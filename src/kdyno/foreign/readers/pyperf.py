"""pyperf JSON: benchmarks[] with runs[]; a run is one process, with warm-ups and values in the unit of its metadata."""

from __future__ import annotations

import json
import statistics

from kdyno.foreign.errors import Broken, reason
from kdyno.foreign.readings import ProgramOutput, Series, positive
from kdyno.foreign.source import Source

TITLE = "pyperf JSON"
UNITS = {"second": "s", "byte": "B", "integer": ""}


def recognises(source: Source) -> bool:
    if not isinstance(source.document, dict):
        return False
    benchmarks = source.document.get("benchmarks", [source.document])
    return (
        isinstance(benchmarks, list)
        and bool(benchmarks)
        and all(isinstance(benchmark, dict) and "runs" in benchmark for benchmark in benchmarks)
    )


def read(source: Source) -> ProgramOutput:
    """Every benchmark is a series with one value for each process: the median of its values.

    The values of a process share its memory layout and hash seed. Warm-ups and calibration runs (which have no
    values) are left out. Raises Broken.
    """
    try:
        document = json.loads(source.text)
        common = document.get("metadata", {})
        series, single = [], True
        for benchmark in document.get("benchmarks", [document]):
            runs = [run for run in benchmark["runs"] if run.get("values")]
            single &= all(len(run["values"]) == 1 for run in runs)
            about = {**common, **benchmark.get("metadata", {})}
            unit = str(about.get("unit", "second"))
            values = tuple(float(statistics.median(run["values"])) for run in runs)
            series.append(Series(str(about.get("name", "benchmark")), UNITS.get(unit, unit), values))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Broken(file=source.shown, format=TITLE, why=reason(error)) from error
    notes = () if single else ("each process of pyperf counts once, with the median of its values",)
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*notes, *unusable))
