"""hyperfine --export-json: results[] with command, times (seconds), parameters."""

from __future__ import annotations

import json
from typing import Any

from kdyno.foreign.errors import Broken
from kdyno.foreign.series import Reading, Series, positive
from kdyno.foreign.source import Source

FORMAT = "hyperfine JSON"


def looks_like(document: Any) -> bool:
    results = document.get("results") if isinstance(document, dict) else None
    return isinstance(results, list) and any(isinstance(each, dict) and "command" in each for each in results)


def read(source: Source) -> Reading:
    """Every command is a series; runs that failed are left out and said. Raises Broken."""
    try:
        results = json.loads(source.text)["results"]
        series, notes = [], []
        for each in results:
            command = str(each["command"])
            times = each.get("times") or []
            codes = each.get("exit_codes") or [0] * len(times)
            kept = tuple(float(x) for x, code in zip(times, codes, strict=True) if code == 0)
            if len(kept) < len(times):
                notes.append(f"{len(times) - len(kept)} of {len(times)} runs of {command} failed: left out")
            if not times:
                notes.append(f"{command} has no single times in it: left out")
            series.append(Series("elapsed", "s", kept, command=command))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Broken(file=source.shown, format=FORMAT, why=_why(error)) from error
    good, said = positive(series)
    return Reading(good, (*notes, *said))


def _why(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error)
