"""How a number is found in a program's output: by a pattern, in JSON, in a table's column, by kdyno's readers; or by
the clock, or as a share of the processors' work.

A program's output is hostile: it is read within limits, and a number counts only if it is there once.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, Tag
from pydantic_core import PydanticCustomError

from kdyno.base import regex
from kdyno.base.frozen import Frozen
from kdyno.base.measurement import Direction
from kdyno.base.text import clean
from kdyno.measure.guest.steps import MOST_STDOUT, StepReport
from kdyno.measure.readers.json_values import Unfit, not_json
from kdyno.measure.workload.base import NotRead

if TYPE_CHECKING:
    from kdyno.measure.guest.pmu_record import PmuRecord

LONGEST_LINE = 4096
"""Characters of a line that are used."""
MOST_LINES = 10_000
MOST_STEPS = 2_000
"""Steps of a compiled pattern. Each character may need all of them; a usual pattern has some fifty."""
MOST_METRICS = 1_000
QUOTED = 60
"""Characters of a program's output that are quoted in a reason."""
PATH_PART = re.compile(r"[^.\[\]]+|\[\d{1,6}\]")
"""A key of an object, or the place in a list."""


def _pattern(pattern: str) -> str:
    """Return the pattern itself, if it is a regular expression with one group, and not too large."""
    try:
        expression = regex.compile_pattern(pattern)
    except regex.BadPattern as error:
        raise PydanticCustomError("pattern", "not a regular expression (RE2): {why}", {"why": str(error)}) from None
    if expression.groups != 1:
        needed = "it needs one group, (...), around the number; (?:...) groups without counting"
        facts = {"needed": needed, "groups": expression.groups}
        raise PydanticCustomError("pattern", "{needed}; it has {groups}", facts)
    if expression.programsize > MOST_STEPS:
        facts = {"steps": expression.programsize, "most": MOST_STEPS}
        raise PydanticCustomError("pattern", "it takes {steps} steps, and {most} are the most: repeat less", facts)
    return pattern


EventName = Annotated[str, Field(pattern=r"^[a-z0-9_]+(\+[a-z0-9_]+)*$", max_length=400)]
MetricName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=80)]
Pattern = Annotated[str, Field(max_length=500), AfterValidator(_pattern)]
Unit = Annotated[str, StringConstraints(pattern=r"^[!-~]([ -~]*[!-~])?$", max_length=40)]
JsonPath = Annotated[
    str, StringConstraints(pattern=r"^([^.\[\]]+|\[\d{1,6}\])(\.[^.\[\]]+|\[\d{1,6}\])*$", max_length=200)
]


class Output:
    """The output of a run, and the emulated PMU's counts of the boot."""

    def __init__(self, step: StepReport, pmu: Path | None = None) -> None:
        self.step, self._pmu = step, pmu

    def lines(self) -> list[str]:
        """Return the lines, each cut to LONGEST_LINE. Raise NotRead if they are too many or too much."""
        self._require_whole()
        lines = self.step.stdout.decode(errors="replace").split("\n")
        if len(lines) > MOST_LINES:
            raise NotRead(f"the command wrote more than {MOST_LINES:,} lines to its standard output")
        return [line.removesuffix("\r")[:LONGEST_LINE] for line in lines]

    def document(self) -> Any:
        """Return the JSON document. Raise NotRead."""
        self._require_whole()
        try:
            return json.loads(self.step.stdout.decode(errors="replace"), object_pairs_hook=_object)
        except (ValueError, RecursionError) as error:
            why = str(error) if isinstance(error, Unfit) else not_json(error)
            raise NotRead(f"the output is not a JSON document: {why}") from None

    @cached_property
    def record(self) -> PmuRecord:
        """Return the PMU record, which the machine has read before. Raise NotRead if there is none."""
        from kdyno.measure.guest.pmu_record import read_pmu_record

        if self._pmu is None:
            raise NotRead("the boot left no PMU record")
        return read_pmu_record(self._pmu)

    def _require_whole(self) -> None:
        if self.step.stdout_is_cut:
            raise NotRead(f"the command wrote more than {MOST_STDOUT:,} bytes to its standard output")


class _Measured(Frozen):
    unit: Unit
    direction: Direction
    """The better direction: `lower` or `higher`."""
    part: bool | None = None
    """Whether it is a part of what another metric measures: it is judged, and stays out of the mean of all. Left out:
    processor time and shares are.
    """

    @property
    def is_part(self) -> bool:
        return bool(self.part)

    @property
    def events(self) -> tuple[str, ...]:
        """Return the events of the emulated PMU that it is made of."""
        return ()


class Metric(_Measured):
    """A number in a line."""

    pattern: Pattern
    """A regular expression (RE2's) that finds it in its line; its one group is the number."""

    def number(self, output: Output) -> float:
        """Return the number. Raise NotRead if there is none, or another one."""
        expression = regex.compile_pattern(self.pattern)
        matches: list[tuple[int, str]] = []
        for line_number, line in enumerate(output.lines(), start=1):
            for match in expression.finditer(line):
                matches.append((line_number, match[1] or ""))
                if len(matches) > 1:
                    (first, _), (second, _) = matches
                    raise NotRead(f"its pattern matches more than once: in line {first} and in line {second}")
        if not matches:
            raise NotRead("no line of the output matches its pattern")
        [(line_number, text)] = matches
        return _positive(text, f"line {line_number}")


class JsonMetric(_Measured):
    """A number in a JSON document."""

    json_path: Annotated[JsonPath, Field(alias="json")]
    """Keys and places from the top: `jobs[0].read.iops`."""

    def number(self, output: Output) -> float:
        """Return the number. Raise NotRead."""
        value = output.document()
        for part in PATH_PART.findall(self.json_path):
            try:
                value = value[int(part[1:-1]) if part.startswith("[") else part]
            except (KeyError, IndexError, TypeError):
                raise NotRead(f"the document has no {clean(part)} where `{self.json_path}` leads") from None
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise NotRead(f"`{self.json_path}` is not a number")
        return _positive(str(value), f"`{self.json_path}`")


class ColumnMetric(_Measured):
    """A number in a table: columns between blanks, or with commas between them."""

    column: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    """The heading of its column."""
    row: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    """The first cell of its row."""

    def number(self, output: Output) -> float:
        """Return the number. Raise NotRead."""
        rows = [[cell.strip() for cell in line.split("," if "," in line else None)] for line in output.lines()]
        headings = [(number, row.index(self.column)) for number, row in enumerate(rows) if self.column in row]
        if len(headings) != 1:
            raise NotRead(f"{len(headings) or 'no'} lines have the heading {self.column}")
        [(heading, place)] = headings
        matching = [row for row in rows[heading + 1 :] if row and row[0] == self.row]
        if len(matching) != 1:
            raise NotRead(f"{len(matching) or 'no'} rows begin with {self.row}")
        if place >= len(matching[0]):
            raise NotRead(f"the row {self.row} ends before the column {self.column}")
        return _positive(matching[0][place], f"the row {self.row}")


class SeriesMetric(_Measured):
    """A number that `kdyno judge` would read from the output."""

    format: Annotated[str, StringConstraints(pattern=r"^[a-z-]+$", max_length=40)]
    """One of the formats of `kdyno judge`: `pgbench`, `stress-ng`, ..."""
    series: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """The name that it gives the benchmark."""

    def number(self, output: Output) -> float:
        """Return the number. Raise NotRead."""
        from kdyno.base.errors import UserError
        from kdyno.measure.readers.formats.registry import BY_NAME
        from kdyno.measure.readers.readings import ProgramOutput
        from kdyno.measure.readers.request import JudgeRequest
        from kdyno.measure.readers.source import FileSource

        reader = BY_NAME.get(self.format)
        if reader is None:
            raise NotRead(f"unknown format {self.format}: {', '.join(BY_NAME)}")
        source = FileSource("the output", "output", output.step.stdout)
        try:
            reading = reader.read(source, JudgeRequest())
        except UserError as error:
            raise NotRead(f"the output is not in the format of {self.format}: {clean(str(error))[:200]}") from None
        named = reading.series if isinstance(reading, ProgramOutput) else ()
        values = [value for series in named if series.benchmark == self.series for value in series.values]
        if len(values) != 1:
            known = ", ".join(dict.fromkeys(clean(series.benchmark)[:QUOTED] for series in named)) or "nothing"
            raise NotRead(f"{len(values) or 'no'} values are of {self.series}; the output has {known}")
        return values[0]


class EventMetric(_Measured):
    """The emulated PMU's counts in a region that the program marked: the mean over its iterations."""

    event: EventName
    """An event, or several with `+` between them."""
    region: Annotated[int, Field(ge=0, lt=1024)]
    """The number of the region, as the program announces it."""

    @property
    def events(self) -> tuple[str, ...]:
        return tuple(self.event.split("+"))

    def number(self, output: Output) -> float:
        """Return the count without interrupts. Raise NotRead if there is none."""
        record = output.record
        region = record.regions.get(self.region)
        if region is None:
            raise NotRead(f"the command marked no region {self.region}")
        if missing := [event for event in self.events if event not in record.names]:
            raise NotRead(f"the PMU didn't count {', '.join(missing)}")
        columns = [record.names.index(event) for event in self.events]
        counts = (int((task + exception)[columns].sum()) for task, exception, _interrupt in region.iterations.values())
        total = sum(counts)
        if not total:
            raise NotRead(f"region {self.region} has no {self.event}: a ratio to 0 can't be judged")
        return total / len(region.iterations)


class TimeMetric(_Measured):
    """The time of the command, by kdyno's clock."""

    time: Literal["elapsed", "user", "system"]
    """From start to end; or processor time in user or kernel code, of all processes that ended meanwhile: parts."""
    unit: Unit = "s"
    direction: Direction = "lower"

    @property
    def is_part(self) -> bool:
        return self.time != "elapsed" if self.part is None else self.part

    def number(self, output: Output) -> float:
        """Return the time. Raise NotRead if it was shorter than the clock's resolution."""
        seconds: float = getattr(output.step, self.time)
        if seconds <= 0:
            raise NotRead(f"the command took no {self.time} time that the clock could measure")
        return seconds


class ShareMetric(_Measured):
    """The kernel's share of the machine's processor time while the command ran, whoever it worked for."""

    share: Literal["kernel"]
    unit: Unit = "%"
    direction: Direction = "lower"

    @property
    def is_part(self) -> bool:
        return self.part is None or self.part

    def number(self, output: Output) -> float:
        """Return the share. Raise NotRead if no tick fell into the kernel: the share is unknown, or a ratio to 0 can't
        be judged.
        """
        user, system = output.step.busy_user, output.step.busy_system
        if system <= 0:
            raise NotRead("/proc/stat counted no time of the kernel while the command ran")
        return 100 * system / (user + system)


KINDS: dict[str, type[Frozen]] = {
    "pattern": Metric,
    "json": JsonMetric,
    "column": ColumnMetric,
    "series": SeriesMetric,
    "event": EventMetric,
    "time": TimeMetric,
    "share": ShareMetric,
}


def _kind(value: Any) -> str:
    """Return the kind of a metric, by its keys."""
    if isinstance(value, dict):
        return next((key for key in KINDS if key in value), "pattern")
    return next((name for name, kind in KINDS.items() if isinstance(value, kind)), "pattern")


AnyMetric = Annotated[
    Annotated[Metric, Tag("pattern")]
    | Annotated[JsonMetric, Tag("json")]
    | Annotated[ColumnMetric, Tag("column")]
    | Annotated[SeriesMetric, Tag("series")]
    | Annotated[EventMetric, Tag("event")]
    | Annotated[TimeMetric, Tag("time")]
    | Annotated[ShareMetric, Tag("share")],
    Discriminator(_kind),
]


def parts_of(metrics: Mapping[str, AnyMetric], *, with_operation: bool = False) -> frozenset[str]:
    """Return the names of the metrics that are parts of what others measure: none if there is nothing but parts.

    `with_operation` says that kdyno itself measures the whole, as an operation.
    """
    parts = frozenset(name for name, metric in metrics.items() if metric.is_part)
    return parts if with_operation or len(parts) < len(metrics) else frozenset()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys differ. Raise Unfit."""
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise Unfit("a key is there twice")
    return dict(pairs)


def _positive(text: str, place: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise NotRead(f"{place} says {clean(text)[:QUOTED]!r}, which is not a positive number")
    return number
