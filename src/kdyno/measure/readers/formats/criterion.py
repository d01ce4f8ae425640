"""criterion's raw.csv: each row is a sample of one process, the time of so many iterations."""

from __future__ import annotations

from collections import defaultdict

from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import ONE_PROCESS, FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import grids, is_printed_number, refusal, shape_of
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.units import format_unit

TITLE = "criterion's raw.csv"
_NAME = ("group", "function", "value")
_TOTALS = {"sample_measured_value", "sample_time_nanos"}
"""The column of a sample's total: the second in criterion 0.2, which has no column of units."""
_COUNT = "iteration_count"


def recognises(source: FileSource) -> bool:
    first = next((line for line in source.head.splitlines() if line.strip()), "")
    columns = first.strip().split(",")
    return tuple(columns[:3]) == _NAME and _COUNT in columns and not _TOTALS.isdisjoint(columns)


def read(source: FileSource) -> ProgramOutput:
    """Read values that are each the time of one iteration, on average over its sample. Several files that were written
    into one, one after the other, are read. Raise Broken, BadValue and the errors of a table.
    """
    header = shape_of(source).header
    total = next((name for name in header if name in _TOTALS), "sample_measured_value")
    missing = [name for name in (*_NAME, total, _COUNT) if name not in header]
    if missing:
        raise Broken(file=source.shown, format=TITLE, why=f"it has no column {missing[0]!r}")
    place = {name: header.index(name) for name in header}
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in grids(source)[0].rows:
        if row.cells == header:
            continue
        for name in (total, _COUNT):
            text = row.cells[place[name]]
            if not is_printed_number(text) or float(text) <= 0:
                raise refusal(source.shown, row.line, name, text, text)
        benchmark = "/".join(filter(None, (row.cells[place[name]] for name in _NAME)))
        unit = row.cells[place["unit"]] if "unit" in place else "ns"
        values[benchmark, format_unit(unit)].append(float(row.cells[place[total]]) / float(row.cells[place[_COUNT]]))
    series = [FileSeries(benchmark, unit, tuple(times)) for (benchmark, unit), times in values.items()]
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*unusable, ONE_PROCESS))
