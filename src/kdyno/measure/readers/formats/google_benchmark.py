"""google-benchmark's --benchmark_format=json: benchmarks[], of run_type iteration or aggregate."""

from __future__ import annotations

from collections import defaultdict

from kdyno.measure.readers import json_values as json
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import ONE_PROCESS, FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import LARGEST
from kdyno.measure.readers.source import FileSource

TITLE = "google-benchmark JSON"
_OWN = {"real_time", "cpu_time", "aggregate_name", "error_occurred"}
"""Keys that every entry has."""


def recognises(source: FileSource) -> bool:
    benchmarks = source.document.get("benchmarks") if isinstance(source.document, dict) else None
    return isinstance(benchmarks, list) and any(isinstance(entry, dict) and _OWN & entry.keys() for entry in benchmarks)


def read(source: FileSource) -> ProgramOutput:
    """Read a value, in real time, from every repetition. If only aggregates were kept, read mean and standard
    deviation.

    CPU time, bytes and items per second are derived from the same measurement. Raise Broken.
    """
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
    series = [FileSeries(name, unit, tuple(values)) for (name, unit), values in times.items()]
    series += [
        FileSeries(name, unit, (sums["mean"],), sd=sums["stddev"] / sums["mean"], n=int(sums["n"]))
        for (name, unit), sums in aggregates.items()
        if (name, unit) not in times and _is_whole(sums)
    ]
    usable, unusable = positive(series)
    notes = [f"{name} failed: left out" for name in failed]
    if times and aggregates:
        notes.append("google-benchmark's own means and medians weren't read: its repetitions were")
    if scaled is True:
        notes.append("google-benchmark says that the CPU's frequency was scaled")
    return ProgramOutput(usable, (*notes, *unusable, ONE_PROCESS))


def _is_whole(sums: dict[str, float]) -> bool:
    """Return whether mean, standard deviation and number are there, and possible."""
    return sums.get("mean", 0.0) > 0 and 0 <= sums.get("stddev", -1.0) < LARGEST and 1 <= sums["n"] < 1e9
