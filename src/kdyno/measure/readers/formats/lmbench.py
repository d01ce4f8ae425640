"""lmbench results: `Simple syscall: 0.1303 microseconds`, and tables of two columns under a heading."""

from __future__ import annotations

import re
from collections import defaultdict

from kdyno.base.measurement import Direction
from kdyno.measure.readers.errors import SummaryOfResults
from kdyno.measure.readers.readings import ProgramOutput, positive, printed_series
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.units import format_unit

TITLE = "lmbench output"
_NUMBER = r"-?\d+(?:\.\d+)?"
_LINE = re.compile(rf"^([A-Za-z][^:]*): ({_NUMBER}) (nanoseconds|microseconds|usecs|milliseconds|[KM]B/sec)\s*$")
_ROW = re.compile(rf"^({_NUMBER}[kKmM]?)\s+({_NUMBER})(?:\s+MB/sec)?$")
_FILES = re.compile(rf"^(\d+k)\s+(\d+)\s+({_NUMBER})\s+({_NUMBER})$")
_SWITCH = re.compile(r'^"size=(\d+k?) ovr=')
_STRIDE = re.compile(r'^"stride=(\d+)')
_PATH = re.compile(r"^(File|Pagefaults)(?: on)? /\S+")
_SUMMARY = re.compile(r"^ *L M B E N C H .*S U M M A R Y", re.MULTILINE)
_SIGN = re.compile(
    r"^Simple (syscall|read|write|stat|fstat|open/close): |^\[lmbench|^Select on \d+ |^\"size=\d+k? ovr=", re.MULTILINE
)


def recognises(source: FileSource) -> bool:
    """Return whether this is the text of a result. Raise SummaryOfResults for what `make see` makes of several."""
    if _SUMMARY.search(source.head):
        raise SummaryOfResults(file=source.shown)
    return bool(_SIGN.search(source.head))


def read(source: FileSource) -> ProgramOutput:
    """Read a benchmark from every line of a result and every row of a table; one that occurs again has further
    values.
    """
    values: dict[tuple[str, str, Direction], list[str]] = defaultdict(list)
    heading = ""
    for line in map(str.strip, source.text.splitlines()):
        if match := _LINE.match(line):
            name = _PATH.sub(lambda path: path[1], match[1])
            values[name, format_unit(match[3]), _direction(match[3])].append(match[2])
        elif match := _SWITCH.match(line):
            heading = f"context switch, {match[1]}"
        elif match := _STRIDE.match(line):
            heading = f"memory latency, stride {match[1]}"
        elif match := _FILES.match(line):
            values[f"file create, {match[1]}", "ops/s", "higher"].append(match[3])
            values[f"file delete, {match[1]}", "ops/s", "higher"].append(match[4])
        elif (match := _ROW.match(line)) and heading:
            name, unit = _row(heading, match[1])
            values[name, unit, _direction(unit)].append(match[2])
        elif line.startswith('"') or line.endswith(("bandwidth", "localhost")):
            heading = line.lstrip('"')
        elif not line:
            heading = ""
    series = [printed_series(name, unit, texts, direction) for (name, unit, direction), texts in values.items()]
    return ProgramOutput(*positive(series))


def _row(heading: str, size: str) -> tuple[str, str]:
    """Return (benchmark, unit) of a row: its first column is a number of processes, or a size in MB."""
    if heading.startswith("context switch"):
        return f"{heading}, {size} processes", "us"
    if heading.startswith("memory latency"):
        return f"{heading}, {size} MB", "ns"
    if heading == "mappings":
        return f"mmap, {size} MB", "us"
    return f"{heading}, {size} MB", "MB/s"


def _direction(unit: str) -> Direction:
    return "higher" if unit.endswith(("B/sec", "B/s")) else "lower"
