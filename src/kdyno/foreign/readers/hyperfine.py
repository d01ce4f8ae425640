"""hyperfine --export-json: results[] with command, times (seconds), exit codes."""

from __future__ import annotations

import json

from kdyno.foreign.errors import Broken, reason
from kdyno.foreign.readings import ProgramOutput, Series, positive
from kdyno.foreign.source import Source

TITLE = "hyperfine JSON"


def recognises(source: Source) -> bool:
    results = source.document.get("results") if isinstance(source.document, dict) else None
    return isinstance(results, list) and any(isinstance(result, dict) and "command" in result for result in results)


def read(source: Source) -> ProgramOutput:
    """Every command is a series. Runs that failed are left out, and a note says so. Raises Broken."""
    try:
        results = json.loads(source.text)["results"]
        series, notes = [], []
        for result in results:
            command = str(result["command"])
            times = result.get("times") or []
            codes = result.get("exit_codes") or [0] * len(times)
            good = tuple(float(time) for time, code in zip(times, codes, strict=True) if code == 0)
            if len(good) < len(times):
                notes.append(f"{len(times) - len(good)} of {len(times)} runs of {command} failed: left out")
            if not times:
                notes.append(f"{command} has no single times in it: left out")
            series.append(Series("elapsed", "s", good, command=command))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Broken(file=source.shown, format=TITLE, why=reason(error)) from error
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*notes, *unusable))
