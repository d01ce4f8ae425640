"""The agent stream: JSON lines that a guest sends, read as the hostile input that they are.

Each line is one record with a version and a type. Nothing of a stream is trusted beyond what validates: a line that is
too long, not UTF-8, not JSON, of another version or of unknown shape ends the reading with a StreamFault that names the
line. The record `end` says how many came before it, so that a stream that was cut short is never taken for a whole one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from kdyno.frozen import Frozen
from kdyno.instrument.job import PROTOCOL
from kdyno.lanes import Lane
from kdyno.measurement import Benchmark, Direction, Sample

LONGEST_LINE = 1 << 20
COUNT_MAX = (1 << 63) - 1
MOST_STDOUT = 1 << 20
"""Bytes that are kept of what a command writes to its standard output."""
MOST_STDERR = 2000
"""Bytes that are kept of the end of what it writes to standard error."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)*$", max_length=80)]
Text = Annotated[str, Field(max_length=2000)]
Count = Annotated[int, Field(ge=0, le=COUNT_MAX, strict=True)]


class _Record(Frozen):
    v: Literal[1]


class HelloRecord(_Record):
    """First record: who speaks."""

    type: Literal["hello"]
    agent: Text
    kernel: Text
    lane: Lane
    icount_shift: Count | None = None
    cpus: Count
    init: bool


class BenchmarkRecord(_Record):
    """A benchmark is declared before its first sample."""

    type: Literal["benchmark"]
    name: Name
    test: Name
    unit: Literal["instr", "ns", "B/instr", "MB/s"]
    direction: Direction
    description: Text


class SampleRecord(_Record):
    """One reading; `elapsed` in the lane's clock, `work` in operations or bytes."""

    type: Literal["sample"]
    benchmark: Name
    iteration: Count
    elapsed: Annotated[int, Field(gt=0, le=COUNT_MAX, strict=True)]
    work: Annotated[int, Field(gt=0, le=COUNT_MAX, strict=True)]


class UnsupportedRecord(_Record):
    """A benchmark that this kernel can't run."""

    type: Literal["unsupported"]
    benchmark: Name
    reason: Text


class BrokenRecord(_Record):
    """A benchmark that failed."""

    type: Literal["broken"]
    benchmark: Name
    reason: Text


class OutputRecord(_Record):
    """What a command said."""

    type: Literal["output"]
    stream: Literal["stdout", "stderr"]
    hex: Annotated[str, Field(pattern=r"^([0-9a-f]{2})*$", max_length=LONGEST_LINE)]


class ExitedRecord(_Record):
    """A command's exit status; 128 + signal if a signal ended it."""

    type: Literal["exited"]
    status: Annotated[int, Field(ge=0, le=255, strict=True)]


class EndRecord(_Record):
    """Last record: the agent did all it was asked to do."""

    type: Literal["end"]
    records: Count


Record = Annotated[
    HelloRecord
    | BenchmarkRecord
    | SampleRecord
    | UnsupportedRecord
    | BrokenRecord
    | OutputRecord
    | ExitedRecord
    | EndRecord,
    Field(discriminator="type"),
]
RECORD: TypeAdapter[Any] = TypeAdapter(Record)


class StreamFault(ValueError):
    """What is wrong with a stream, and in which line."""


class AgentReport(Frozen):
    """A stream, read: as much of it as is sound, and what is wrong with the rest."""

    hello: HelloRecord | None = None
    benchmarks: tuple[Benchmark, ...] = ()
    samples: tuple[Sample, ...] = ()
    unsupported: dict[str, str] = {}
    broken: dict[str, str] = {}
    exit_status: int | None = None
    stdout: bytes = b""
    """What the command wrote to its standard output: the first MOST_STDOUT bytes."""
    stdout_is_cut: bool = False
    stderr: bytes = b""
    """The last MOST_STDERR bytes of its standard error."""
    complete: bool = False
    fault: str | None = None


def parse_record(line: bytes, number: int) -> Any:
    """One line to one record; raises StreamFault."""
    where = f"agent record {number}"
    if not line.endswith(b"\n"):
        raise StreamFault(f"{where} is truncated")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise StreamFault(f"{where} is not UTF-8 (byte {error.start})") from None
    try:
        return RECORD.validate_json(text)
    except ValidationError as error:
        raise StreamFault(f"{where}: {_what_is_wrong(error, text)}") from None


def _what_is_wrong(error: ValidationError, text: str) -> str:
    version = _version(text)
    if version is not None and version != PROTOCOL:
        return f"version {version}, but this kdyno reads version {PROTOCOL}: agent and kdyno must be of one release"
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the record"
    # Both may quote the guest, and end in a message on somebody's terminal.
    return "".join(c for c in f"{place}: {first['msg']}" if c.isprintable())[:300]


def _version(text: str) -> int | None:
    class Versioned(Frozen):
        model_config = {"extra": "ignore"}
        v: int

    try:
        return Versioned.model_validate_json(text).v
    except ValidationError:
        return None


def records(path: Path) -> Iterator[Any]:
    """The records of a stream file, one by one; raises StreamFault at the first unsound one."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                raise StreamFault(f"agent record {number} is longer than {LONGEST_LINE} bytes")
            yield parse_record(line, number)
            number += 1


def read_stream(path: Path) -> AgentReport:
    """Read a stream file to its end or to its first fault; never raises for what a guest wrote."""
    try:
        return _Reader().read(records(path))
    except FileNotFoundError:
        return AgentReport(fault="no stream")


class _Reader:
    """Collects records and checks what one line alone can't show: order, declarations, counts."""

    def __init__(self) -> None:
        self.hello: HelloRecord | None = None
        self.benchmarks: dict[str, Benchmark] = {}
        self.samples: dict[tuple[str, int], Sample] = {}
        self.unsupported: dict[str, str] = {}
        self.broken: dict[str, str] = {}
        self.exit_status: int | None = None
        self.stdout = bytearray()
        self.stdout_is_cut = False
        self.stderr = b""
        self.complete = False

    def read(self, stream: Iterable[Any]) -> AgentReport:
        fault = None
        try:
            for number, record in enumerate(stream):
                self._take(number, record)
        except StreamFault as error:
            fault = str(error)
        return AgentReport(
            hello=self.hello,
            benchmarks=tuple(self.benchmarks.values()),
            samples=tuple(self.samples.values()),
            unsupported=self.unsupported,
            broken=self.broken,
            exit_status=self.exit_status,
            stdout=bytes(self.stdout),
            stdout_is_cut=self.stdout_is_cut,
            stderr=self.stderr,
            complete=self.complete and fault is None,
            fault=fault,
        )

    def _take(self, number: int, record: Any) -> None:
        where = f"agent record {number}"
        if self.complete:
            raise StreamFault(f"{where} comes after the end")
        if (self.hello is None) != isinstance(record, HelloRecord):
            raise StreamFault(f"{where}: the stream must start with one hello")
        match record:
            case HelloRecord():
                self.hello = record
            case BenchmarkRecord():
                self.benchmarks[record.name] = Benchmark(**record.model_dump(exclude={"v", "type"}))
            case SampleRecord():
                if record.benchmark not in self.benchmarks:
                    raise StreamFault(f"{where}: a sample of {record.benchmark}, which was not declared")
                key = (record.benchmark, record.iteration)
                if key in self.samples:
                    raise StreamFault(f"{where}: {record.benchmark} iteration {record.iteration} comes twice")
                self.samples[key] = Sample(**record.model_dump(exclude={"v", "type"}))
            case UnsupportedRecord():
                self.unsupported[record.benchmark] = record.reason
            case BrokenRecord():
                self.broken[record.benchmark] = record.reason
            case ExitedRecord():
                self.exit_status = record.status
            case EndRecord():
                if record.records != number:
                    raise StreamFault(f"{where}: the agent counted {record.records} records, {number} came")
                self.complete = True
            case OutputRecord():
                self._hear(record)

    def _hear(self, record: OutputRecord) -> None:
        written = bytes.fromhex(record.hex)
        if record.stream == "stderr":
            self.stderr = (self.stderr + written)[-MOST_STDERR:]
            return
        room = MOST_STDOUT - len(self.stdout)
        self.stdout += written[:room]
        self.stdout_is_cut |= len(written) > room
