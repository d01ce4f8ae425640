"""The printed output of a workload's program, read by the workload's definition: `kdyno judge --workload NAME`."""

from __future__ import annotations

from kdyno.measure.guest.steps import MOST_STDOUT, StepReport
from kdyno.measure.readers.formats.registry import Reader
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import last_place
from kdyno.measure.readers.source import FileSource
from kdyno.measure.workload.base import NotRead
from kdyno.measure.workload.definition import Definition
from kdyno.measure.workload.metrics import ColumnMetric, JsonMetric, Metric, Output, SeriesMetric

PRINTED = (Metric, JsonMetric, ColumnMetric, SeriesMetric)
"""The kinds of metrics that are found in a program's output; it does not show the others."""


def reader_of(definition: Definition) -> Reader:
    """Return the reader of files with the output of one run each."""
    return Reader(
        definition.name,
        f"output of the workload {definition.name}",
        lambda _source, _request: True,
        lambda source, _: _read(source, definition),
        f"the text of its metrics: {', '.join(definition.metrics)}",
    )


def _read(source: FileSource, definition: Definition) -> ProgramOutput:
    """Read a benchmark from every printed metric, with one value; notes name the missing ones. Raise EmptyFile, NotText
    and WrongEncoding.
    """
    source.require_text()
    written = source.data
    step = StepReport(
        definition.name, "command", stdout=written[:MOST_STDOUT], stdout_is_cut=len(written) > MOST_STDOUT
    )
    output = Output(step)
    series, notes = [], []
    for name, metric in definition.metrics.items():
        if not isinstance(metric, PRINTED):
            notes.append(f"{name} isn't printed: left out")
            continue
        try:
            value = metric.number(output)
        except NotRead as why:
            notes.append(f"{name} wasn't read: {why}")
            continue
        step_size = last_place(repr(value))
        series.append(
            FileSeries(definition.benchmark(name), metric.unit, (value,), direction=metric.direction, step=step_size)
        )
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*notes, *unusable))
