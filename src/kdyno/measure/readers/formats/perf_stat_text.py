"""perf stat without -x and -j, as people paste it: ` 5,671,901  cycles  # 3.167 GHz  ( +-  0.15% )  (83.31%)`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from kdyno.measure.readers.errors import Intervals, TwoMarks
from kdyno.measure.readers.formats.perf_counts import Count, program_output
from kdyno.measure.readers.numerals import decimal_of, plain
from kdyno.measure.readers.readings import ProgramOutput
from kdyno.measure.readers.source import FileSource

TITLE = "perf stat output"
LEAST_PERCENT = 0.005
"""What a standard error that is printed as 0.00 % may be at most."""
_HEAD = re.compile(r"^\s*Performance counter stats for (?P<command>.+?)(?: \((?P<runs>\d{1,9}) runs\))?:\s*$")
_NUMBER = r"\d+(?:[.,'’\u00a0\u202f ]\d+)*"
_NOISE = rf"\( \+- +(?P<error>{_NUMBER})% \)"
_EVENT = re.compile(
    rf"^ *(?P<value>{_NUMBER}|<not counted>|<not supported>) +(?:(?P<unit>msec|ns|Joules|MiB|[A-Z][a-z]+) +)?"
    rf"(?P<event>[A-Za-z_][^\s#]*)(?: +#[^(]*)?(?: *{_NOISE})?(?: +\((?P<ran>{_NUMBER})%\))?\s*$"
)
_SECONDS = re.compile(
    rf"^ *(?P<value>{_NUMBER})(?: \+- {_NUMBER})? seconds (?P<event>time elapsed|user|sys)(?: +{_NOISE})?\s*$"
)
_INTERVAL = re.compile(r"^#? +time +counts unit events", re.MULTILINE)
NAMES = {"time elapsed": "elapsed", "user": "user time", "sys": "system time"}


def recognises(source: FileSource) -> bool:
    return bool(_INTERVAL.search(source.head)) or any(map(_HEAD.match, source.head.splitlines()))


def read(source: FileSource) -> ProgramOutput:
    """Read a benchmark from every event. Raise Intervals and TwoMarks."""
    if _INTERVAL.search(source.head):
        raise Intervals(file=source.shown)
    counts = list(_counts(source))
    decimal = decimal_of(number for count in counts for number in (count.value, count.error or ""))
    if decimal is None:
        raise TwoMarks(file=source.shown)

    def written(number: str) -> str:
        return number if number.startswith("<") else plain(number, decimal.mark)

    output = program_output(
        replace(
            count,
            value=written(count.value),
            error=count.error and f"{max(float(plain(count.error, decimal.mark) or 0), LEAST_PERCENT):g}",
            ran=plain(count.ran, decimal.mark) or "100",
        )
        for count in counts
    )
    commands = {count.command for count in counts}
    series = output.series if len(commands) > 1 else tuple(replace(one, command=None) for one in output.series)
    return ProgramOutput(series, (*output.notes, *filter(None, (decimal.note,))))


def _counts(source: FileSource) -> Iterator[Count]:
    """Yield the counts with their numbers as they were printed."""
    command, runs = "", None
    for line in source.text.splitlines():
        if head := _HEAD.match(line):
            command, runs = head["command"].strip("'"), int(head["runs"]) if head["runs"] else None
        elif command and (match := _SECONDS.match(line)):
            yield Count(NAMES[match["event"]], match["value"], "s", match["error"], command=command, runs=runs)
        elif command and (match := _EVENT.match(line)):
            yield Count(
                match["event"],
                match["value"],
                match["unit"] or "",
                match["error"],
                match["ran"] or "100",
                command,
                runs,
            )
