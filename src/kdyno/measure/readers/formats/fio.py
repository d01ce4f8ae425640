"""fio: the operations of a job in a second, from --output-format=json, json+ or terse, or from its text."""

from __future__ import annotations

import re
from collections import defaultdict

from kdyno.measure.readers import json_values as json
from kdyno.measure.readers.cells import cell_of
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive, printed_series
from kdyno.measure.readers.sheet import is_printed_number, refusal
from kdyno.measure.readers.source import FileSource

TITLE = "fio output"
_WAYS = ("read", "write", "trim")
_JOB = re.compile(r"^(?P<job>[^:\n]+): \(groupid=\d+, jobs=\d+\)")
_IOPS = re.compile(r"^ +(?P<way>read|write|trim) ?: (?:IOPS=(?P<rate>\d+(?:\.\d+)?[kM]?)|.*\biops=(?P<older>\d+))")
_TERSE = re.compile(r"^[345];fio-")
_TERSE_RATES = {"3": {"read": 7, "write": 48}, "4": {"read": 7, "write": 48}, "5": {"read": 7, "write": 54}}
"""Fields of a line of --output-format=terse, from 0, by its version."""
_TERSE_ERROR = 4
_DOCUMENT = re.compile(r"^\{", re.MULTILINE)


def recognises(source: FileSource) -> bool:
    head = source.head
    if source.form == "json" or '"fio version"' in head:
        return '"fio version"' in head
    if _TERSE.match(head):
        return True
    return any(map(_JOB.match, head.splitlines())) or bool(re.search(r"^fio-\d", head, re.MULTILINE) and "rw=" in head)


def read(source: FileSource) -> ProgramOutput:
    """Read a run from each document of a file; clones of a job run at the same time, and their operations are added.

    Bandwidth is derived from the same measurement. Raise Broken.
    """
    if '"fio version"' in source.head:
        return _read_json(source)
    return _read_terse(source) if _TERSE.match(source.head) else _read_text(source)


def _read_json(source: FileSource) -> ProgramOutput:
    rates: dict[str, list[float]] = defaultdict(list)
    notes: list[str] = []
    try:
        for document in json.documents(source.text):
            sums: dict[str, float] = {}
            for row in json.rows(json.table(document, "the document").get("jobs"), "jobs"):
                job = json.table(row, "a job")
                name = json.text(job.get("jobname"), "jobname")
                if job.get("error"):
                    notes.append(f"{name} failed: left out")
                    continue
                for way in _WAYS:
                    rate = json.number(json.table(job.get(way, {}), way).get("iops", 0.0), "iops")
                    if rate > 0:
                        sums[f"{name} {way}"] = sums.get(f"{name} {way}", 0.0) + rate
            for benchmark, rate in sums.items():
                rates[benchmark].append(rate)
    except ValueError as error:
        raise Broken(file=source.shown, format=TITLE, why=json.why(error)) from error
    usable, unusable = positive([FileSeries(name, "IOPS", tuple(v), direction="higher") for name, v in rates.items()])
    return ProgramOutput(usable, (*dict.fromkeys(notes), *unusable))


def _read_terse(source: FileSource) -> ProgramOutput:
    rates: dict[str, list[str]] = defaultdict(list)
    notes: list[str] = []
    for number, line in enumerate(source.text.splitlines(), 1):
        fields = line.split(";")
        if not _TERSE.match(line):
            continue
        places = _TERSE_RATES[fields[0]]
        if len(fields) <= max(places.values()):
            raise Broken(file=source.shown, format=TITLE, why=f"line {number} is cut short")
        if fields[_TERSE_ERROR] != "0":
            notes.append(f"{fields[2]} failed: left out")
            continue
        for way, place in places.items():
            if not is_printed_number(fields[place]):
                raise refusal(source.shown, number, f"{way} IOPS", fields[place], fields[place])
            if float(fields[place]) > 0:
                rates[f"{fields[2]} {way}"].append(fields[place])
    usable, unusable = positive([printed_series(name, "IOPS", texts, "higher") for name, texts in rates.items()])
    return ProgramOutput(usable, (*dict.fromkeys(notes), *unusable))


def _read_text(source: FileSource) -> ProgramOutput:
    rates: dict[str, list[str]] = defaultdict(list)
    name = ""
    for line in source.text.splitlines():
        if job := _JOB.match(line):
            name = job["job"]
        elif name and (match := _IOPS.match(line)):
            cell = cell_of(match["rate"] or match["older"], ".")
            if cell:
                rates[f"{name} {match['way']}"].append(cell.mean)
    series = [printed_series(name, "IOPS", texts, "higher") for name, texts in rates.items()]
    return ProgramOutput(*positive(series))
