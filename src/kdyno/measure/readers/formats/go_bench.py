"""go test -bench: `BenchmarkFork-8   12345   98765 ns/op   120 B/op   3 allocs/op`."""

from __future__ import annotations

import re
from collections import defaultdict

from kdyno.measure.readers.errors import Benchstat
from kdyno.measure.readers.readings import ONE_PROCESS, ProgramOutput, positive, printed_series
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.units import find, format_unit

TITLE = "go test -bench output"
_ROW = re.compile(r"^Benchmark(\S+)\s+\d+\s+(\d\S*\s+\S+/\S+.*)$", re.MULTILINE)
_PAIR = re.compile(r"(?<![\d.])(\d++(?:\.\d++)?(?:e[-+]\d++)?)\s++(\S+)")
_BENCHSTAT = re.compile(r"\bvs base\b|^name +old \S+/op +new \S+/op +delta", re.MULTILINE)


def recognises(source: FileSource) -> bool:
    """Return whether a text has rows of benchmarks. Raise Benchstat for a summary of such rows."""
    if _BENCHSTAT.search(source.head):
        raise Benchstat(file=source.shown)
    return bool(_ROW.search(source.head))


def read(source: FileSource) -> ProgramOutput:
    """Read a value for each unit of every row; MB/s is derived from ns/op, and zeros are left out because ratios need
    positive values.
    """
    values: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in _ROW.finditer(source.text.replace("\r", "")):
        for text, unit in _PAIR.findall(row[2]):
            if unit != "MB/s" and float(text) > 0:
                name = row[1] if unit == "ns/op" else f"{row[1]} {unit}"
                values[name, unit].append(text)
    series = [
        printed_series(name, format_unit(unit), texts, "lower" if unit.endswith("/op") and not find(unit) else None)
        for (name, unit), texts in values.items()
    ]
    usable, unusable = positive(series)
    return ProgramOutput(usable, (*unusable, ONE_PROCESS))
