"""lkp: the comparison of commits in reports of the kernel test robot, and matrix.json with the values of runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

from kdyno.base.measurement import Direction
from kdyno.base.text import format_list
from kdyno.measure.readers import json_values as json
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.numerals import is_missing
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import is_printed_number, last_place
from kdyno.measure.readers.source import FileSource

TITLE = "lkp's comparison, or its matrix.json"
LEAST_PRINTED = 0.02
"""lkp prints deviations of 2 % and more of the mean; one that isn't printed is smaller."""
_COMMITS = re.compile(r"^commit:\s*$", re.MULTILINE)
_COMMIT = re.compile(r"^\s+([0-9A-Za-z][^\s(]*)(?:\s+\(.*)?\s*$")
_RULE = re.compile(r"^\s*-{8,}(?:\s+-{8,})+\s*$")
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_VALUE = re.compile(rf"^\s*({_NUMBER}|-)(?:\s*±\s*(\d+)%)?(?=\s)")
_CHANGE = re.compile(rf"^\s*(?:{_NUMBER}%?|[-+]?inf%?)(?=\s)")
_RUNS = re.compile(r"^\s*\d*:(\d+)\s")
_METRIC = re.compile(r"[A-Za-z][^.]*\..")
"""The name of a metric in matrix.json; `6.12` is the name of a kernel."""
_HIGHER = re.compile(
    r"(?:^|[._])(?:ops|workload|throughput|bandwidth|bw|iops|tps|qps|rps|fps|score)(?:[._]|$)|_?per_(?:sec|thread|process)|"
    r"^will-it-scale\.\d+\.(?:threads|processes)$",
    re.IGNORECASE,
)
_LOWER = re.compile(r"(?:^|[._])(?:latency|lat|elapsed_time|time|seconds|usecs?|us|ms|ns)(?:[._]|$)", re.IGNORECASE)
_MONITORS = frozenset(
    (
        *("boot-time", "buddyinfo", "cpuidle", "diskstats", "dmesg", "interrupts", "iostat", "kmsg", "latency_stats"),
        *("meminfo", "mpstat", "numa-meminfo", "numa-numastat", "numa-vmstat", "numastat", "pagetypeinfo"),
        *("perf-profile", "perf-sched", "perf-stat", "pmeter", "proc-stat", "proc-vmstat", "sched_debug", "slabinfo"),
        *("softirqs", "stderr", "last_state", "time", "turbostat", "uptime", "vmstat", "zoneinfo"),
    )
)
"""Monitors that lkp records with every test: they explain a change, but do not belong to the test."""
LINE_LENGTH = 1000


def recognises(source: FileSource) -> bool:
    if source.form != "json":
        return bool(_COMMITS.search(source.head)) and "%change" in source.head
    document = source.document
    return isinstance(document, dict) and bool(document) and all(map(_is_metric, document.items()))


def _is_metric(item: tuple[str, object]) -> bool:
    """Return whether a name of lkp's has its values, or their mean."""
    name, values = item
    if isinstance(values, float):
        return bool(_METRIC.match(name))
    return (
        bool(_METRIC.match(name))
        and isinstance(values, list)
        and bool(values)
        and all(isinstance(value, float) for value in values)
    )


def read(source: FileSource) -> ProgramOutput:
    """Read a benchmark from every metric of the test; metrics of monitors are left out if there are others. Raise
    Broken.
    """
    return _read_json(source) if source.form == "json" else _read_text(source)


def _read_json(source: FileSource) -> ProgramOutput:
    try:
        document = json.table(source.document, "the document")
        rows = [
            (name, json.numbers(values if isinstance(values, list) else [values], name))
            for name, values in document.items()
        ]
    except ValueError as error:
        raise Broken(file=source.shown, format=TITLE, why=json.why(error)) from error
    series = [FileSeries(name, "", values, direction=_direction(name)) for name, values in rows]
    return _select_test_metrics(series, "")


def _read_text(source: FileSource) -> ProgramOutput:
    series: list[FileSeries] = []
    commits: list[str] = []
    runs: set[int] = set()
    small: set[str] = set()
    listing = False
    lines = [line[:LINE_LENGTH] for line in source.text.splitlines()]
    tables = [_parameters(lines, number) for number, line in enumerate(lines) if _COMMITS.match(line)]
    suffixes = iter(_differences(tables, source.shown))
    suffix = ""
    for line in lines:
        if _COMMITS.match(line):
            commits, listing, suffix = [], True, next(suffixes)
        elif listing and (match := _COMMIT.match(line)):
            commits.append(match[1])
        elif listing and commits and _RULE.match(line):
            listing = False
        elif not listing and commits:
            if match := _RUNS.match(line):
                runs.add(int(match[1]))
            name, values = _row(line, len(commits))
            for commit, (mean, percent) in zip(commits, values, strict=False):
                if is_missing(mean):
                    continue
                small |= set() if percent else {name + suffix}
                series.append(
                    FileSeries(
                        name + suffix,
                        "",
                        (float(mean),),
                        sd=float(percent) / 100 if percent else LEAST_PRINTED,
                        n=next(iter(runs)) if len(runs) == 1 else None,
                        direction=_direction(name),
                        variant=commit,
                        step=last_place(mean),
                    )
                )
    if not series:
        raise Broken(file=source.shown, format=TITLE, why="no row has a value for each commit and the name of a metric")
    output = _select_test_metrics(series, _test_of(source.head))
    note = (
        "if lkp prints no deviation, it is below 2 % of the mean, and 2 % is assumed"
        if any(one.benchmark in small for one in output.series)
        else ""
    )
    return ProgramOutput(output.series, (*output.notes, *((note,) if note else ())))


def _parameters(lines: Sequence[str], commits: int) -> dict[str, str]:
    """Return the parameters of the table whose commits are listed from this line on: `tbox_group` -> `lkp-skl-1`."""
    names = next((number for number in range(commits - 1, max(commits - 6, -1), -1) if "testcase" in lines[number]), -1)
    if names < 0:
        return {}
    return dict(zip(lines[names].strip().rstrip(":").split("/"), lines[names + 1].strip().split("/"), strict=False))


def _differences(tables: Sequence[Mapping[str, str]], file: str) -> list[str]:
    """Return what is added to the names of each table's metrics: the parameters in which the tables of a report differ.

    Raise Broken if two tables have the same parameters.
    """
    varied = [name for name in dict.fromkeys(chain(*tables)) if len({table.get(name, "") for table in tables}) > 1]
    suffixes = ["".join(f", {table[name]}" for name in varied if name in table) for table in tables]
    if len(set(suffixes)) < len(suffixes):
        raise Broken(file=file, format=TITLE, why="it has several comparisons, and no parameter distinguishes them")
    return suffixes


def _row(line: str, commits: int) -> tuple[str, list[tuple[str, str]]]:
    """Return the name of a metric, and (mean, deviation in percent) of each commit; nothing for any other line."""
    values: list[tuple[str, str]] = []
    rest = line
    for place in range(2 * commits - 1):
        match = (_CHANGE if place % 2 else _VALUE).match(rest)
        if not match:
            return "", []
        if place % 2 == 0:
            if not (match[1] == "-" or is_printed_number(match[1])):
                return "", []
            values.append((match[1], match[2] or ""))
        rest = rest[match.end() :]
    name = rest.strip()
    return (name, values) if name and " " not in name else ("", [])


def _select_test_metrics(series: Sequence[FileSeries], test: str) -> ProgramOutput:
    """Return only the metrics of the test, if there are any."""
    own = [one for one in series if one.benchmark.partition(".")[0] == test]
    own = own or [one for one in series if one.benchmark.partition(".")[0] not in _MONITORS] or list(series)
    usable, _ = positive(own)
    kept = {one.benchmark for one in usable}
    zero = list(dict.fromkeys(one.benchmark for one in own if one.benchmark not in kept))
    others = len({one.benchmark for one in series} - {one.benchmark for one in own})
    notes = (
        [f"metrics of monitors were not read: {others}; they explain a change, but are not measurements of the test"]
        if others
        else []
    )
    if zero:
        notes.append(f"left out, since ratios need positive numbers: {format_list(zero)}")
    return ProgramOutput(usable, tuple(notes))


def _direction(metric: str) -> Direction | None:
    higher, lower = bool(_HIGHER.search(metric)), bool(_LOWER.search(metric))
    return None if higher == lower else "higher" if higher else "lower"


def _test_of(head: str) -> str:
    """Return the name of the test: the last part of the text below the line that ends in `testcase:`; empty without
    one.
    """
    for line, below in pairwise(head.splitlines()):
        if "testcase" in line and line.rstrip().endswith(":") and below[:1].isspace() and below.strip():
            return below.split()[0].rpartition("/")[2]
    return ""
