"""hyperfine --export-json: results[] with command, times (seconds), exit codes."""

from __future__ import annotations

from kdyno.foreign import json_values as json
from kdyno.foreign.errors import Broken
from kdyno.foreign.readings import ProgramOutput, Series, positive
from kdyno.foreign.source import Source

TITLE = "hyperfine JSON"


def recognises(source: Source) -> bool:
    results = source.document.get("results") if isinstance(source.document, dict) else None
    return isinstance(results, list) and any(isinstance(result, dict) and "command" in result for result in results)


def read(source: Source) -> ProgramOutput:
    """Every command is a series. Runs that failed are left out, and a note says so. Raises Broken."""
    try:
        document = json.table(source.document, "the document")
        series, notes = [], []
        for each in json.rows(document.get("results"), "results"):
            result = json.table(each, "a result")
            command = json.text(result.get("command"), "command")
            times = json.numbers(result.get("times") or [], "times")
            codes = json.rows(result.get("exit_codes") or [0] * len(times), "exit_codes")
            if len(codes) != len(times):
                raise ValueError(f"{len(times)} times and {len(codes)} exit_codes")
            good = tuple(time for time, code in zip(times, codes, strict=True) if code == 0)
            if len(good) < len(times):
                notes.append(f"{len(times) - len(good)} of {len(times)} runs of {command} failed: left out")
            if not times:
                notes.append(f"{command} has no single times in it: left out")
            series.append(Series("elapsed", "s", good, command=command))
    except ValueError as error:
        raise Broken(file=source.shown, format=TITLE, why=str(error)) from error
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*notes, *unusable))
