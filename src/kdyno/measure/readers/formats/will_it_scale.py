"""will-it-scale: a row for each number of tasks, with the operations per second of that many processes and threads."""

from __future__ import annotations

import csv
from itertools import dropwhile

from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive, printed_series
from kdyno.measure.readers.sheet import is_printed_number
from kdyno.measure.readers.source import FileSource

TITLE = "will-it-scale CSV"
_COLUMNS = "tasks,processes,processes_idle,threads,threads_idle,linear"


def recognises(source: FileSource) -> bool:
    return any(line.strip() == _COLUMNS for line in source.head.splitlines())


def read(source: FileSource) -> ProgramOutput:
    """Read the rates. The idle shares explain them, and `linear` is one task's rate times the number of tasks."""
    series: list[FileSeries] = []
    for cells in csv.reader(dropwhile(lambda line: line.strip() != _COLUMNS, source.text.splitlines())):
        if len(cells) == len(_COLUMNS.split(",")) and cells[0].isdecimal() and int(cells[0][:9]) > 0:
            for kind, rate in (("processes", cells[1]), ("threads", cells[3])):
                # A test that has no threads has the rate 0.
                if is_printed_number(rate) and float(rate):
                    series.append(printed_series(f"{kind}, {cells[0][:9]}", "ops/s", [rate], "higher"))
    return ProgramOutput(*positive(series))
