"""hyperfine: --export-json has results[] with command, times (seconds), exit codes; --export-csv and what it prints
have only their means.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kdyno.measure.readers import json_values as json
from kdyno.measure.readers import units
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import is_printed_number, last_place, refusal
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.tables import grids

TITLE = "hyperfine output"
_COLUMNS = "command,mean,stddev,median,user,system,min,max"
"""The header of the CSV begins like this; parameters follow."""
_PARAMETER = "parameter_"
_BENCHMARK = re.compile(r"^\s*Benchmark #?\d+: (?P<command>\S.*)")
_V = r"(?P<{}>\d+(?:\.\d+)?) (?P<{}>ns|[µμu]s|ms|s|min)"
_TIME = re.compile(
    r"^\s*Time \((?:mean ± σ|abs ≡)\): +" + _V.format("mean", "unit") + "(?: ± +" + _V.format("sd", "sd_unit") + ")?"
)
_RUNS = re.compile(r"^\s*Range \(min … max\): .*\s(?P<runs>\d+) runs")


def recognises(source: FileSource) -> bool:
    if source.form != "json":
        lines = source.head.splitlines()
        return source.head.lstrip().startswith(_COLUMNS) or (
            any(map(_BENCHMARK.match, lines)) and any(map(_TIME.match, lines))
        )
    results = source.document.get("results") if isinstance(source.document, dict) else None
    return isinstance(results, list) and any(isinstance(result, dict) and "command" in result for result in results)


def read(source: FileSource) -> ProgramOutput:
    """Read a series from every command. Failed runs are left out, and a note says so.

    Raise Broken, and the errors of a table.
    """
    if source.form == "json":
        return _read_json(source)
    return _read_csv(source) if source.head.lstrip().startswith(_COLUMNS) else _read_text(source)


def _read_json(source: FileSource) -> ProgramOutput:
    try:
        document = json.table(source.document, "the document")
        series, notes, parameters = [], [], []
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
            series.append(
                FileSeries("elapsed", "s", good, command=command) if times else _mean_of_json(result, command)
            )
            given = json.table(result.get("parameters") or {}, "parameters")
            parameters.append({name: value for name, value in given.items() if isinstance(value, str)})
    except ValueError as error:
        raise Broken(file=source.shown, format=TITLE, why=json.why(error)) from error
    usable, unusable = positive(_with_parameters(series, parameters))
    return ProgramOutput(usable, (*notes, *unusable))


def _mean_of_json(result: Mapping[str, Any], command: str) -> FileSeries:
    """Return the mean of a command whose single times were removed; how many there were isn't known. Raise Unfit."""
    mean = json.number(result.get("mean"), "times or mean")
    deviation = result.get("stddev")
    sd = json.number(deviation, "stddev") if deviation is not None else None
    return FileSeries("elapsed", "s", (mean,), command=command, sd=sd / mean if sd is not None and mean else None)


def _read_csv(source: FileSource) -> ProgramOutput:
    """Read means and standard deviations of seconds; a single run has no standard deviation."""
    series, parameters = [], []
    for grid in grids(source):
        if grid.header[:8] != tuple(_COLUMNS.split(",")):
            raise Broken(file=source.shown, format=TITLE, why=f"its columns are not {_COLUMNS}")
        varied = [column.removeprefix(_PARAMETER) for column in grid.header[8:]]
        for row in grid.rows:
            command, mean, sd = row.cells[:3]
            for name, text in (("mean", mean), ("stddev", sd or "0")):
                if not is_printed_number(text) or float(text) < 0:
                    raise refusal(source.shown, row.line, name, text, text)
            value = float(mean)
            series.append(
                FileSeries("elapsed", "s", (value,), command=command, sd=float(sd) / value if sd and value else None)
            )
            parameters.append(dict(zip(varied, row.cells[8:], strict=True)))
    return ProgramOutput(*positive(_with_parameters(series, parameters)))


def _read_text(source: FileSource) -> ProgramOutput:
    """Read means, standard deviations and numbers of runs from what hyperfine prints."""
    series: list[FileSeries] = []
    command = ""
    for line in source.text.splitlines():
        if benchmark := _BENCHMARK.match(line):
            command = benchmark["command"].rstrip()
        elif command and (time := _TIME.match(line)):
            mean = float(time["mean"])
            factor = units.factor(time["sd_unit"], time["unit"]) if time["sd"] else None
            sd = float(time["sd"]) * (factor or 1.0) / mean if time["sd"] and mean else None
            series.append(
                FileSeries("elapsed", time["unit"], (mean,), command=command, sd=sd, step=last_place(time["mean"]))
            )
        elif series and (match := _RUNS.match(line)):
            series[-1] = replace(series[-1], n=int(match["runs"][:9]))
    return ProgramOutput(*positive(series))


def _with_parameters(series: Sequence[FileSeries], parameters: Sequence[Mapping[str, str]]) -> list[FileSeries]:
    """Return the series with their parameters (`-L`) in the names of commands that several have in common, as under
    one `-n`.
    """
    count = Counter(one.command for one in series)
    return [
        replace(one, command=", ".join((str(one.command), *(f"{name} {value}" for name, value in given.items()))))
        if count[one.command] > 1 and given
        else one
        for one, given in zip(series, parameters, strict=True)
    ]
