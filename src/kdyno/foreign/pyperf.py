"""pyperf JSON: benchmarks[] with runs[]; a run is one process, with warm-ups and values in the unit of its metadata."""

from __future__ import annotations

import json
import statistics
from typing import Any

from kdyno.foreign.errors import Broken
from kdyno.foreign.series import Reading, Series, positive
from kdyno.foreign.source import Source

FORMAT = "pyperf JSON"
UNITS = {"second": "s", "byte": "B", "integer": ""}


def looks_like(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    each = document.get("benchmarks", [document])
    return isinstance(each, list) and bool(each) and all(isinstance(one, dict) and "runs" in one for one in each)


def read(source: Source) -> Reading:
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
        why = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise Broken(file=source.shown, format=FORMAT, why=why) from error
    notes = () if single else ("each process of pyperf counts once, with the median of its values",)
    good, said = positive(series)
    return Reading(good, (*notes, *said))
