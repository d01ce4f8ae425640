"""The workload `command`: any program in the guest, which says its numbers itself.

What a guest writes is hostile: it is read line by line, with limits on how much of it, how long and how many the lines
are, and a number counts only if it is there once.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from kdyno import regex
from kdyno.frozen import Frozen
from kdyno.instrument.loads import find_loads, names_loads
from kdyno.instrument.stream import MOST_STDOUT, AgentReport
from kdyno.lanes import LANES, Lane
from kdyno.measurement import Benchmark, Direction, Sample
from kdyno.text import clean
from kdyno.workload.base import JobPart, NotRead, WorkloadSettings

if TYPE_CHECKING:
    from kdyno.instrument.pmu_record import PmuRecord

TEST = "command"
"""What its benchmarks are said to belong to."""
LONGEST_LINE = 4096
"""Characters of a line that are looked at."""
MOST_LINES = 10_000
MOST_STEPS = 2_000
"""Steps of a pattern's program. Each character may need all of them; a usual pattern has some fifty."""
MOST_METRICS = 1_000
QUOTED = 60
"""Characters of what the guest said that are quoted in a reason."""


def _pattern(pattern: str) -> str:
    """The pattern itself, if it is a regular expression with one group, and not too large."""
    try:
        expression = regex.compiled(pattern)
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
Word = Annotated[str, Field(pattern=r"^[^\x00]*$")]


class Metric(Frozen):
    """One number in the output of a command, or of what the emulated PMU counted in a region that it marked."""

    pattern: Pattern | None = None
    """A regular expression (RE2's) that finds it in its line; its one group is the number."""
    event: EventName | None = None
    """In its place: an event of the emulated PMU, or several with `+` between them; the mean over iterations."""
    region: Annotated[int, Field(ge=0, lt=1024)] | None = None
    """Number of the region, as the command announces it."""
    unit: Unit
    direction: Direction
    """Which is better: `lower` or `higher`."""

    @model_validator(mode="after")
    def _one_place(self) -> Metric:
        if (self.pattern is None) == (self.event is None):
            raise PydanticCustomError("place", "it needs either a `pattern`, or an `event` and its `region`")
        if (self.event is None) != (self.region is None):
            raise PydanticCustomError("place", "`event` and `region` go together")
        return self

    @property
    def events(self) -> tuple[str, ...]:
        return tuple(self.event.split("+")) if self.event else ()


class CommandWorkload(WorkloadSettings):
    """A program in the guest, and the numbers to find in its standard output or in what was counted of it."""

    runs_marked_loops: ClassVar[bool] = False
    iterations_range: ClassVar[tuple[int, int]] = (1, 1)

    type: Literal["command"] = "command"
    command: Annotated[tuple[Word, ...], Field(min_length=1)]
    """Program and arguments; `["sh", "-c", "..."]` for a shell's command."""
    metrics: Annotated[dict[MetricName, Metric], Field(min_length=1, max_length=MOST_METRICS)]
    """By the name of the benchmark: where its number is."""

    def part(self, lane: Lane) -> JobPart:  # noqa: ARG002
        return JobPart(iterations=1, command=self.command)

    def reading(self) -> dict[str, Any]:
        reading = self.model_dump(mode="json", include={"metrics"}, exclude_none=True)
        return (
            {**reading, "loads": hashlib.sha256(find_loads().read_bytes()).hexdigest()}
            if names_loads(self.command)
            else reading
        )

    def events(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(event for metric in self.metrics.values() for event in metric.events))

    def benchmark_count(self) -> int:
        return len(self.metrics)

    def notices(self, lane: Lane) -> tuple[str, ...]:
        values = "values are what the command says, in its own units"
        virtual = "; a time that it takes itself is virtual: it counts instructions" if LANES[lane].icount else ""
        return (values + virtual,)

    def described(self, report: AgentReport) -> tuple[Benchmark, ...]:  # noqa: ARG002
        return tuple(
            Benchmark(
                name=name,
                test=TEST,
                unit=metric.unit,
                direction=metric.direction,
                description=f"{name}, {'as the emulated PMU counts it' if metric.event else 'as the command says it'}",
            )
            for name, metric in self.metrics.items()
        )

    def read(self, report: AgentReport, pmu: Path | None = None) -> AgentReport:
        """A metric that can't be told is broken; the boot has failed if that is true of all, or if the command did."""
        if report.exit_status is None:
            raise NotRead("the command left no exit status")
        if report.exit_status:
            raise NotRead(f"the command ended with status {report.exit_status}{_last_words(report.stderr)}")
        lines = _lines(report)
        record = _record(pmu) if self.events() else None
        samples, broken = [], {}
        for name, metric in self.metrics.items():
            try:
                value = _number(metric.pattern, lines) if metric.pattern else _counted(metric, record)
                samples.append(Sample(benchmark=name, iteration=0, value=value))
            except NotRead as why:
                broken[name] = str(why)
        if not samples:
            name, why_broken = next(iter(broken.items()))
            raise NotRead(f"the command said none of its numbers; {name}: {why_broken}")
        return report.model_copy(
            update={
                "benchmarks": self.described(report),
                "samples": tuple(samples),
                "unsupported": {},
                "broken": broken,
            }
        )


def _lines(report: AgentReport) -> list[str]:
    """The lines of the output, each cut to LONGEST_LINE. Raises NotRead if they are too many or too much."""
    if report.stdout_is_cut:
        raise NotRead(f"the command wrote more than {MOST_STDOUT:,} bytes to its standard output")
    lines = report.stdout.decode(errors="replace").split("\n")
    if len(lines) > MOST_LINES:
        raise NotRead(f"the command wrote more than {MOST_LINES:,} lines to its standard output")
    return [line.removesuffix("\r")[:LONGEST_LINE] for line in lines]


def _number(pattern: str, lines: list[str]) -> float:
    """The one number that the pattern finds. Raises NotRead if there is none, or another one."""
    expression = regex.compiled(pattern)
    matches: list[tuple[int, str]] = []
    for line_number, line in enumerate(lines, start=1):
        for match in expression.finditer(line):
            matches.append((line_number, match[1] or ""))
            if len(matches) > 1:
                (first, _), (second, _) = matches
                raise NotRead(f"its pattern matches more than once: in line {first} and in line {second}")
    if not matches:
        raise NotRead("no line of the output matches its pattern")
    [(line_number, text)] = matches
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise NotRead(f"line {line_number} says {clean(text)[:QUOTED]!r}, which is no positive number")
    return number


def _record(pmu: Path | None) -> PmuRecord:
    """Raises NotRead where there is none; the machine has read it before."""
    from kdyno.instrument.pmu_record import read_pmu_record

    if pmu is None:
        raise NotRead("the boot left no PMU record")
    return read_pmu_record(pmu)


def _counted(metric: Metric, record: PmuRecord | None) -> float:
    """The mean of the region's iterations, interrupts left out. Raises NotRead if there is none."""
    region = record.regions.get(metric.region) if record and metric.region is not None else None
    if record is None or region is None:
        raise NotRead(f"the command marked no region {metric.region}")
    if missing := [event for event in metric.events if event not in record.names]:
        raise NotRead(f"the PMU didn't count {', '.join(missing)}")
    columns = [record.names.index(event) for event in metric.events]
    counts = (int((task + exception)[columns].sum()) for task, exception, _interrupt in region.iterations.values())
    total = sum(counts)
    if not total:
        raise NotRead(f"region {metric.region} has no {metric.event}: a ratio to 0 can't be judged")
    return total / len(region.iterations)


def _last_words(stderr: bytes) -> str:
    """The last line of a command's standard error, as the end of a sentence."""
    lines = [clean(line) for line in stderr.decode(errors="replace").splitlines()]
    return next((f": {line[-200:]}" for line in reversed(lines) if line), "")
