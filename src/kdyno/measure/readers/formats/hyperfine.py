"""hyperfine: --export-json has results[] with command, times (seconds), exit codes; --export-csv only their means."""

from __future__ import annotations

from kdyno.measure.readers import json_values as json
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import grids, is_printed_number, refusal
from kdyno.measure.readers.source import FileSource

TITLE = "hyperfine output"
_COLUMNS = "command,mean,stddev,median,user,system,min,max"
"""The header of the CSV begins like this; parameters follow."""


def recognises(source: FileSource) -> bool:
    if source.form != "json":
        return source.head.lstrip().startswith(_COLUMNS)
    results = source.document.get("results") if isinstance(source.document, dict) else None
    return isinstance(results, list) and any(isinstance(result, dict) and "command" in result for result in results)


def read(source: FileSource) -> ProgramOutput:
    """Read a series from every command. Failed runs are left out, and a note says so.

    Raise Broken, and the errors of a table.
    """
    return _read_json(source) if source.form == "json" else _read_csv(source)


def _read_json(source: FileSource) -> ProgramOutput:
    try:
        document = json.table(source.document, "the document")
        series, notes = [], []
        for row in json.rows(document.get("results"), "results"):
            result = json.table(row, "a result")
            command = json.text(result.get("command"), "command")
            times = json.numbers(result.get("times") or [], "times")
            codes = json.rows(result.get("exit_codes") or [0] * len(times), "exit_codes")
            if len(codes) != len(times):
                raise json.Unfit(f"{len(times)} times and {len(codes)} exit_codes")
            good = tuple(time for time, code in zip(times, codes, strict=True) if code == 0)
            if len(good) < len(times):
                notes.append(f"{len(times) - len(good)} of {len(times)} runs of {command} failed: left out")
            if not times:
                notes.append(f"{command} has no single times: left out")
            series.append(FileSeries("elapsed", "s", good, command=command))
    except ValueError as error:
        raise Broken(file=source.shown, format=TITLE, why=json.why(error)) from error
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*notes, *unusable))


def _read_csv(source: FileSource) -> ProgramOutput:
    """Read means and standard deviations of seconds; a single run has no standard deviation."""
    series = []
    for grid in grids(source):
        if grid.header[:8] != tuple(_COLUMNS.split(",")):
            raise Broken(file=source.shown, format=TITLE, why=f"its columns are not {_COLUMNS}")
        for row in grid.rows:
            command, mean, sd = row.cells[:3]
            for name, text in (("mean", mean), ("stddev", sd or "0")):
                if not is_printed_number(text) or float(text) < 0:
                    raise refusal(source.shown, row.line, name, text, text)
            value = float(mean)
            series.append(
                FileSeries("elapsed", "s", (value,), command=command, sd=float(sd) / value if sd and value else None)
            )
    return ProgramOutput(*positive(series))
