"""criterion's raw.csv: each row is a sample of one process, the time of so many iterations. What criterion prints, and
its estimates.json, have a mean and its standard error.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

from kdyno.measure.readers import json_values as json
from kdyno.measure.readers import units
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import ONE_PROCESS, FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import is_printed_number, last_place, refusal, shape_of
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.tables import grids
from kdyno.measure.readers.units import format_unit

TITLE = "criterion output"
NORMAL_QUANTILE = 1.959964
"""Of the standard normal distribution at 97.5 %: half of criterion's interval of 95 %, in standard errors."""
_ESTIMATES = {"mean", "median"}
_V = r"(?P<{}>\d+(?:\.\d+)?) (?P<{}>ps|ns|[µμu]s|ms|s)"
_TIME = re.compile(
    r"^(?P<name>\S(?>(?:(?!\stime:\s).)*))?\s*+time:\s+\["
    + " ".join(map(_V.format, ("low", "mean", "high"), ("_low", "unit", "_high")))
    + r"\]"
)
_SAMPLES = re.compile(r"(?:Collecting|among) (?P<n>\d{1,9}) (?:samples|measurements)")
_BENCHMARKING = re.compile(r"Benchmarking (?P<name>[^:]+)(?:: (?:Warming|Collecting|Analyzing).*)?$")
_NAME = ("group", "function", "value")
_TOTALS = {"sample_measured_value", "sample_time_nanos"}
"""The column of a sample's total: the second in criterion 0.2, which has no column of units."""
_COUNT = "iteration_count"
_LINE_END = re.compile(r"[\r\n]+")


def recognises(source: FileSource) -> bool:
    if source.form == "json":
        document = source.document
        return (
            isinstance(document, dict) and document.keys() >= _ESTIMATES and all(map(_is_estimate, document.values()))
        )
    if any(map(_TIME.match, source.head.splitlines())):
        return True
    first = next((line for line in source.head.splitlines() if line.strip()), "")
    columns = first.strip().split(",")
    return tuple(columns[:3]) == _NAME and _COUNT in columns and not _TOTALS.isdisjoint(columns)


def read(source: FileSource) -> ProgramOutput:
    """Read values that are each the time of one iteration, on average over its sample. Several files that were written
    into one, one after the other, are read. Raise Broken, BadValue and the errors of a table.
    """
    if source.form == "json":
        return _read_estimates(source)
    if any(map(_TIME.match, source.head.splitlines())):
        return _read_text(source)
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


def _is_estimate(value: object) -> bool:
    return value is None or (isinstance(value, dict) and "point_estimate" in value)


def _read_estimates(source: FileSource) -> ProgramOutput:
    """Read the mean of estimates.json, which doesn't name its benchmark. Raise Broken."""
    try:
        mean = json.table(json.table(source.document, "the document").get("mean"), "mean")
        value, error = (json.number(mean.get(name), name) for name in ("point_estimate", "standard_error"))
    except ValueError as fault:
        raise Broken(file=source.shown, format=TITLE, why=json.why(fault)) from fault
    usable, unusable = positive([FileSeries("time", "ns", (value,), error=error / value if value > 0 else None)])
    return ProgramOutput(usable, (*unusable, ONE_PROCESS))


def _read_text(source: FileSource) -> ProgramOutput:
    """Read the estimates of what criterion prints; a change since its last run is made of other numbers."""
    series: list[FileSeries] = []
    above, n = "", None
    for line in _LINE_END.split(source.text):
        if samples := _SAMPLES.search(line):
            n = int(samples["n"])
            if series and "among" in line:
                series[-1] = replace(series[-1], n=n)
        if named := _BENCHMARKING.search(line):
            above = named["name"].strip()
        elif match := _TIME.match(line):
            name, mean = (match["name"] or above or "time").rstrip(), float(match["mean"])
            low, high = (
                float(match[side]) * (units.factor(match[f"_{side}"], match["unit"]) or 1.0) for side in ("low", "high")
            )
            error = (high - low) / 2 / NORMAL_QUANTILE / mean if mean > 0 else None
            step = last_place(match["mean"])
            series.append(FileSeries(name, format_unit(match["unit"]), (mean,), error=error, n=n, step=step))
            n = None
        elif line.strip() and not line[0].isspace() and ":" not in line:
            above = line.strip()  # a long name has a line of its own
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*unusable, ONE_PROCESS))
