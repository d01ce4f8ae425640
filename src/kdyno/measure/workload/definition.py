"""A workload as data: one TOML file with the commands to run and how to read their numbers. See docs/workloads.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from kdyno.base import toml
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen
from kdyno.base.lanes import LANES, LaneName
from kdyno.base.mistakes import problems, unfit
from kdyno.base.regex import BadPattern, compile_pattern
from kdyno.measure.guest.job import CommandBenchmark, Program
from kdyno.measure.workload.metrics import MOST_METRICS, AnyMetric, MetricName, parts_of
from kdyno.measure.workload.needs import Needs

MOST_BYTES = 1_000_000
"""Of a file; one of a workload is never that long, but an experiment may stand in its place."""
SUFFIX = ".toml"
OF_EXPERIMENTS = frozenset(("baseline", "variants"))
PROBLEMS_SHOWN = 5

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)]
ParameterName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
Value = int | float | Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=1000)]
Script = Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", max_length=20_000)]

ArchivePath = Annotated[str, StringConstraints(pattern=r"^usr/[A-Za-z0-9_+.-][A-Za-z0-9_+./-]{0,200}$")]


def _is_pattern(pattern: str) -> str:
    try:
        compile_pattern(pattern)
    except BadPattern as why:
        raise ValueError(f"not a regular expression (RE2): {why}") from None
    return pattern


MemberPattern = Annotated[str, StringConstraints(min_length=1, max_length=1000), AfterValidator(_is_pattern)]


class NoSuchWorkload(UserError):
    message = "there is no workload {name}"
    hint = "kdyno's own are: {known}; name one of yours by the path of its file, ./NAME.toml"


class WorkloadUnfit(UserError):
    message = "the workload {path} can't be used: {why}"
    hint = "see docs/workloads.md for the content of such a file; `kdyno workload show NAME` prints one of kdyno's own"


class NotAWorkload(UserError):
    message = "{path} is an experiment file, and a workload file is needed here"
    hint = "name the workloads that its [workload] uses; docs/workloads.md says what a workload file holds"


class NoSuchParameter(UserError):
    message = "the workload {workload} has no parameter {name}"
    hint = "it has {known}"


class NotACount(UserError):
    message = "the workload {workload} does {name} = {value} operations, which is not a whole number above 0"
    hint = "give whole numbers for the parameters that its [operation] counts by"


class Operation(Frozen):
    """An operation that one run of the command does a fixed number of times, so that it can be counted: a region of the
    emulated PMU.
    """

    name: MetricName
    """The name for the benchmark: `request`, `transaction`, `file`."""
    count: Annotated[tuple[Annotated[int, Field(ge=1, lt=2**31)] | ParameterName, ...], Field(min_length=1)]
    """The number of operations: the product of these numbers and parameters."""


class Definition(Needs):
    """What a workload is."""

    name: Name
    description: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    caution: Annotated[str, StringConstraints(max_length=500)] = ""
    """A notice that a reader of its numbers must know first; shown with every run."""
    packages: tuple[Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.+-]{1,80}$")], ...] = ()
    unpack: Annotated[dict[ArchivePath, MemberPattern], Field(max_length=10)] = {}
    memory_mb: Annotated[int, Field(ge=64, le=1 << 20)] | None = None
    cpus: Annotated[int, Field(ge=1, le=64)] = 1
    """CPUs that it should have, where the lane allows more than one."""
    lanes: Annotated[tuple[LaneName, ...], Field(min_length=1)] = tuple(LANES)
    """The lanes in which its numbers are meaningful."""
    parameters: dict[ParameterName, Value] = {}
    """Names and defaults; its scripts find them in their environment."""
    set_up: Script | None = None
    """A script for `sh -eu`: once, before the first run."""
    command: Script
    """A script for `sh -eu`: the part that is measured."""
    report: Script | None = None
    """A script for `sh -eu`: after each run that succeeded, unmeasured. Numbers are also looked for in its output."""
    tear_down: Script | None = None
    """A script for `sh -eu`: once, after the last run, however that ended."""
    runs: Annotated[int, Field(ge=1, le=1000)] = 1
    """The number of runs of the command in a boot: samples of each metric."""
    seconds: Annotated[int, Field(ge=1, le=86_400)] = 600
    """The most seconds of a step, by the guest's clock."""
    operation: Operation | None = None
    """Quantities that kdyno itself measures, for each run as a whole."""
    metrics: Annotated[dict[MetricName, AnyMetric], Field(min_length=1, max_length=MOST_METRICS)]

    @model_validator(mode="after")
    def _operation_is_known(self) -> Self:
        if self.operation is None:
            return self
        for factor in self.operation.count:
            if isinstance(factor, str) and factor not in self.parameters:
                raise PydanticCustomError(
                    "operation", "the operation is counted by {name}, which is not a parameter", {"name": factor}
                )
        if self.operation.name in self.metrics:
            raise PydanticCustomError("operation", "the operation has the name of a metric")
        return self

    def benchmark(self, name: str) -> str:
        """Return the benchmark name of its metric or its operation."""
        return f"{self.name}.{name}"

    @property
    def benchmark_names(self) -> tuple[str, ...]:
        """Return the benchmark names of its operation and its metrics."""
        operation = (self.operation.name,) if self.operation else ()
        return tuple(self.benchmark(name) for name in (*operation, *self.metrics))

    @property
    def parts(self) -> frozenset[str]:
        """Return the names of the metrics that are parts of what its operation or another metric measures."""
        return parts_of(self.metrics, with_operation=self.operation is not None)

    def program(self, values: Mapping[str, Value], lane: LaneName, runs: int | None = None) -> Program:
        """What the agent does. Raises NoSuchParameter and NotACount."""
        for name in values:
            if name not in self.parameters:
                raise NoSuchParameter(workload=self.name, name=name, known=", ".join(self.parameters) or "none")
        chosen = {**self.parameters, **values}
        environment = {name: str(value) for name, value in chosen.items()}
        return Program(
            name=self.name,
            in_root=bool(self.packages),
            environment={**environment, "lane": lane, "HOME": "/root"},
            set_up=_shell(self.set_up) if self.set_up else None,
            command=_shell(self.command),
            report=_shell(self.report) if self.report else None,
            tear_down=_shell(self.tear_down) if self.tear_down else None,
            runs=runs or self.runs,
            seconds=self.seconds,
            measured=self._measured_benchmark(chosen),
        )

    def _measured_benchmark(self, values: Mapping[str, Value]) -> CommandBenchmark | None:
        if self.operation is None:
            return None
        numbers = [(name, values.get(name, name) if isinstance(name, str) else name) for name in self.operation.count]
        for name, value in numbers:
            if not isinstance(value, int) or value < 1:
                raise NotACount(workload=self.name, name=name, value=value)
        return CommandBenchmark(
            benchmark=self.benchmark(self.operation.name),
            description=f"{self.description}: one {self.operation.name}",
            operations=math.prod(int(value) for _, value in numbers),
        )


Definitions = tuple[Definition, ...]
"""The document that `kdyno workload list --json` prints."""


def as_parameter(word: str, default: Value | None) -> Value:
    """Return a user's value of a parameter: a whole number if its default is a number, and the word can be one."""
    if isinstance(default, int | float):
        with suppress(ValueError):
            return int(word)
    return word


def _shell(script: str) -> tuple[str, ...]:
    return ("sh", "-euc", script)


def own_names() -> list[str]:
    """Return the workloads that come with kdyno."""
    directory = files("kdyno").joinpath("data", "workloads")
    return sorted(entry.name.removesuffix(SUFFIX) for entry in directory.iterdir() if entry.name.endswith(SUFFIX))


def own_text(name: str) -> str:
    """Return the file of one of kdyno's own. Raise NoSuchWorkload."""
    if name not in own_names():
        raise NoSuchWorkload(name=name, known=", ".join(own_names()))
    return files("kdyno").joinpath("data", "workloads", f"{name}{SUFFIX}").read_text(encoding="utf-8")


def is_file(name: str) -> bool:
    """Return whether the path of a file is meant, not the name of something of kdyno's or of the agent's."""
    return name.endswith(SUFFIX) or "/" in name


def is_experiment(written: Mapping[str, object]) -> bool:
    """Return whether a file is an experiment: it has a key that every experiment must have, and no workload can."""
    return not OF_EXPERIMENTS.isdisjoint(written)


def text_of(name: str, base: Path = Path()) -> tuple[str, str]:
    """Return the file of a workload, one of kdyno's own or a path that starts from `base`, and its name for messages.

    Raise NoSuchWorkload and WorkloadUnfit.
    """
    if not is_file(name):
        return own_text(name), name
    path = base / Path(name).expanduser()
    try:
        return read_whole(path, MOST_BYTES).decode(), str(path)
    except OSError as error:
        raise WorkloadUnfit(path=path, why=error.strerror) from error
    except UnicodeDecodeError:
        raise WorkloadUnfit(path=path, why="it is not UTF-8") from None


def read(name: str, base: Path = Path()) -> tuple[dict[str, object], str]:
    """What that file says, and its name for messages. Raises NoSuchWorkload and WorkloadUnfit."""
    text, path = text_of(name, base)
    try:
        written = toml.parse(text)
    except ValueError as error:
        raise WorkloadUnfit(path=path, why=f"not TOML: {error}") from None
    for keys, why in unfit(written):
        raise WorkloadUnfit(path=path, why=f"`{'.'.join(map(str, keys))[: toml.KEY_SHOWN]}`: {why}")
    return written, path


def definition(name: str, base: Path = Path()) -> Definition:
    """The workload that is named, as `text_of` finds it. Raises NoSuchWorkload, NotAWorkload and WorkloadUnfit."""
    written, path = read(name, base)
    if is_experiment(written):
        raise NotAWorkload(path=path)
    try:
        return Definition.model_validate(written)
    except ValidationError as error:
        raise WorkloadUnfit(path=path, why="; ".join(problems(error, Definition, written)[:PROBLEMS_SHOWN])) from None
