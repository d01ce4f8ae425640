"""google-benchmark's --benchmark_format=json: benchmarks[], of run_type iteration or aggregate; its CSV, and the table
that it prints.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from kdyno.measure.readers import json_values as json
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import ONE_PROCESS, FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import LARGEST, is_printed_number, last_place
from kdyno.measure.readers.source import FileSource

TITLE = "google-benchmark output"
_COLUMNS = "name,iterations,real_time,cpu_time,time_unit"
"""The header of the CSV begins like this."""
_HEAD = re.compile(r"^Benchmark +Time +CPU(?: +Iterations)?\b")
_ROW = re.compile(
    r"^(?P<name>\S(?>(?:(?! \d+(?:\.\d+)? (?:ns|us|ms|s) ).)*)) "
    r"(?P<time>\d+(?:\.\d+)?) (?P<unit>ns|us|ms|s) +\d\S*+ (?:ns|us|ms|s) +(?P<n>\d+)"
)
_AGGREGATE = re.compile(r"(?P<run>.*)_(?P<kind>mean|median|stddev|cv|min|max)")
_OWN = {"real_time", "cpu_time", "aggregate_name", "error_occurred"}
"""Keys that every entry has."""


def recognises(source: FileSource) -> bool:
    if source.form != "json":
        lines = [line.strip() for line in source.head.splitlines()]
        return any(line.startswith(_COLUMNS) for line in lines) or any(map(_HEAD.match, lines))
    benchmarks = source.document.get("benchmarks") if isinstance(source.document, dict) else None
    return isinstance(benchmarks, list) and any(isinstance(entry, dict) and _OWN & entry.keys() for entry in benchmarks)


def read(source: FileSource) -> ProgramOutput:
    """Read a value, in real time, from every repetition. If only aggregates were kept, read mean and standard
    deviation.

    CPU time, bytes and items per second are derived from the same measurement. Raise Broken.
    """
    return _read_json(source) if source.form == "json" else _read_text(source)


def _read_json(source: FileSource) -> ProgramOutput:
    try:
        document = json.table(source.document, "the document")
        entries = [json.table(entry, "a benchmark") for entry in json.rows(document.get("benchmarks"), "benchmarks")]
        times: dict[tuple[str, str], list[float]] = defaultdict(list)
        aggregates: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        failed: dict[str, None] = {}
        for entry in entries:
            name = json.text(entry.get("run_name", entry.get("name")), "a name")
            if entry.get("error_occurred") or entry.get("skipped"):
                failed[name] = None
                continue
            key = name, json.text(entry.get("time_unit", "ns"), "time_unit")
            if entry.get("run_type") == "aggregate":
                if "real_time" in entry:  # a complexity fit has none
                    kind = json.text(entry.get("aggregate_name"), "aggregate_name")
                    aggregates[key][kind] = json.number(entry["real_time"], "real_time")
                    aggregates[key]["n"] = json.number(entry.get("repetitions", 0.0), "repetitions")
            else:
                times[key].append(json.number(entry.get("real_time"), "real_time"))
        scaled = json.table(document.get("context", {}), "context").get("cpu_scaling_enabled")
    except ValueError as error:
        raise Broken(file=source.shown, format=TITLE, why=json.why(error)) from error
    notes = [f"{name} failed: left out" for name in failed]
    if scaled is True:
        notes.append("google-benchmark says that the CPU's frequency was scaled")
    return _join(times, aggregates, 0.0, notes)


def _read_text(source: FileSource) -> ProgramOutput:
    """Read the CSV, or the table for people. Lines of other forms, such as those of errors, are left out."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    aggregates: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    step = 0.0
    for name, time, unit, n in _rows(source):
        if aggregate := _AGGREGATE.fullmatch(name):
            sums = aggregates[aggregate["run"], unit]
            sums[aggregate["kind"]], sums["n"] = float(time), float(n)
        else:
            times[name, unit].append(float(time))
            step = max(step, last_place(time))
    return _join(times, aggregates, step, [])


def _rows(source: FileSource) -> Iterator[tuple[str, str, str, str]]:
    """Yield (name, real time, unit, iterations) of each row."""
    lines = source.text.splitlines()
    if not any(line.startswith(_COLUMNS) for line in lines):
        for match in filter(None, map(_ROW.match, lines)):
            yield match["name"].rstrip(), match["time"], match["unit"], match["n"]
        return
    for cells in csv.reader(lines):
        if len(cells) > len(_COLUMNS.split(",")):
            name, iterations, time, _, unit, *_ = cells
            if is_printed_number(time) and iterations.isdecimal() and unit:
                yield name, time, unit, iterations[:15]


def _join(
    times: dict[tuple[str, str], list[float]],
    aggregates: dict[tuple[str, str], dict[str, float]],
    step: float,
    notes: Sequence[str],
) -> ProgramOutput:
    """Return a series for each benchmark: its repetitions, else its mean and standard deviation."""
    series = [FileSeries(name, unit, tuple(values), step=step) for (name, unit), values in times.items()]
    series += [
        FileSeries(name, unit, (sums["mean"],), sd=sums["stddev"] / sums["mean"], n=int(sums["n"]))
        for (name, unit), sums in aggregates.items()
        if (name, unit) not in times and _is_whole(sums)
    ]
    usable, unusable = positive(series)
    if times and aggregates:
        notes = [*notes, "google-benchmark's own means and medians weren't read: its repetitions were"]
    return ProgramOutput(usable, (*notes, *unusable, ONE_PROCESS))


def _is_whole(sums: dict[str, float]) -> bool:
    """Return whether mean, standard deviation and number are there, and possible."""
    return sums.get("mean", 0.0) > 0 and 0 <= sums.get("stddev", -1.0) < LARGEST and 1 <= sums["n"] < 1e9
