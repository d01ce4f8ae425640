"""The workload `command`: any program in the guest, which says its numbers itself.

What a guest writes is hostile: it is read line by line, with limits on how much of it, how long and how many the lines
are, and a number counts only if it is there once.
"""

from __future__ import annotations

import hashlib
import math
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from kdyno import regex
from kdyno.frozen import Frozen
from kdyno.instrument.job import Program
from kdyno.instrument.loads import find_loads, names_loads
from kdyno.instrument.steps import MOST_STDOUT, StepReport
from kdyno.instrument.stream import AgentReport
from kdyno.lanes import LANES, Lane
from kdyno.measurement import Benchmark, Direction, Sample
from kdyno.text import clean
from kdyno.workload.base import JobPart, NotRead, WorkloadSettings

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


MetricName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=80)]
Pattern = Annotated[str, Field(max_length=500), AfterValidator(_pattern)]
Unit = Annotated[str, StringConstraints(pattern=r"^[!-~]([ -~]*[!-~])?$", max_length=40)]
Word = Annotated[str, Field(pattern=r"^[^\x00]*$")]


class Metric(Frozen):
    """One number in the output of a command."""

    pattern: Pattern
    """A regular expression (RE2's) that finds it in its line; its one group is the number."""
    unit: Unit
    direction: Direction
    """Which is better: `lower` or `higher`."""


class CommandWorkload(WorkloadSettings):
    """A program in the guest, and the numbers to find in what it writes to its standard output."""

    runs_marked_loops: ClassVar[bool] = False
    iterations_range: ClassVar[tuple[int, int]] = (1, 1)

    type: Literal["command"] = "command"
    command: Annotated[tuple[Word, ...], Field(min_length=1)]
    """Program and arguments; `["sh", "-c", "..."]` for a shell's command."""
    metrics: Annotated[dict[MetricName, Metric], Field(min_length=1, max_length=MOST_METRICS)]
    """By the name of the benchmark: where its number is."""

    def part(self, lane: Lane) -> JobPart:  # noqa: ARG002
        return JobPart(iterations=1, programs=(Program(name=TEST, command=self.command),))

    def reading(self) -> dict[str, Any]:
        reading = self.model_dump(mode="json", include={"metrics"})
        return (
            {**reading, "loads": hashlib.sha256(find_loads().read_bytes()).hexdigest()}
            if names_loads(self.command)
            else reading
        )

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
                description=f"{name}, as the command says it",
            )
            for name, metric in self.metrics.items()
        )

    def read(self, report: AgentReport) -> AgentReport:
        """A metric that can't be told is broken; the boot has failed if that is true of all, or if the command did."""
        lines = lines_of(finished_step(report))
        samples, broken = [], {}
        for name, metric in self.metrics.items():
            try:
                samples.append(Sample(benchmark=name, iteration=0, value=_number(metric.pattern, lines)))
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


def finished_step(report: AgentReport) -> StepReport:
    """The command's step. Raises NotRead if it failed."""
    if not report.steps or report.steps[0].status is None:
        raise NotRead("the command left no exit status")
    [step] = report.steps
    if step.status:
        raise NotRead(f"the command ended with status {step.status}{last_words(step.stderr)}")
    return step


def lines_of(step: StepReport) -> list[str]:
    """The lines of the output, each cut to LONGEST_LINE. Raises NotRead if they are too many or too much."""
    if step.stdout_is_cut:
        raise NotRead(f"the command wrote more than {MOST_STDOUT:,} bytes to its standard output")
    lines = step.stdout.decode(errors="replace").split("\n")
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


def last_words(stderr: bytes) -> str:
    """The last line of a command's standard error, as the end of a sentence."""
    lines = [clean(line) for line in stderr.decode(errors="replace").splitlines()]
    return next((f": {line[-200:]}" for line in reversed(lines) if line), "")
