"""The records of the agent stream: JSON lines that a guest sends, each validated by itself.

A line that is too long, not UTF-8, not JSON, of another version or of unknown shape is a StreamFault that names it.
stream.py checks whether a record was requested, and comes in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import ClockUnit, LaneName
from kdyno.base.measurement import Direction
from kdyno.base.mistakes import first_fault
from kdyno.base.text import clean
from kdyno.measure.guest.job import PROTOCOL
from kdyno.measure.guest.soak import (
    MOST_TAIL,
    NANOSECONDS,
    Failure,
    Kilobytes,
    MemoryField,
    MemoryLook,
    Progress,
    Tally,
)
from kdyno.measure.guest.steps import Phase

LONGEST_LINE = 1 << 20
LONGEST_TEXT = 2000
COUNT_MAX = (1 << 63) - 1

Name = Annotated[str, Field(pattern=r"^[a-z0-9_-]+(\.[a-z0-9_]+)*$", max_length=80)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(lambda text: clean(text)[:LONGEST_TEXT])]
"""A guest's text as one line that may be shown and stored: without escape sequences, NUL and controls."""
Count = Annotated[int, Field(ge=0, le=COUNT_MAX, strict=True)]


class _Record(Frozen):
    v: Literal[1]


class HelloRecord(_Record):
    """The first record: the agent introduces itself."""

    type: Literal["hello"]
    agent: Text
    kernel: Text
    lane: LaneName
    icount_shift: Count | None = None
    cpus: Count
    init: bool
    indirect_target_selection: Text | None = None
    """The kernel's own statement about it, if it knows of it; see judge/verdicts/hellos.py."""
    busy_tasks: Count | None = None
    """Tasks that ran beside the agent when the benchmarks began; None if there were none."""


class BenchmarkRecord(_Record):
    """A benchmark is declared before its first sample."""

    type: Literal["benchmark"]
    name: Name
    test: Name
    unit: ClockUnit
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
    """A part of a step's output."""

    type: Literal["output"]
    stream: Literal["stdout", "stderr"]
    hex: Annotated[str, Field(pattern=r"^([0-9a-f]{2})*$", max_length=LONGEST_LINE)]


class StepRecord(_Record):
    """A step of a program begins."""

    type: Literal["step"]
    program: Text
    phase: Phase
    run: Count


class ExitedRecord(_Record):
    """How a step ended; times are nanoseconds."""

    type: Literal["exited"]
    status: Annotated[int, Field(ge=0, le=255, strict=True)]
    elapsed: Count
    user: Count
    system: Count
    busy_user: Count
    busy_system: Count


class LeftRecord(_Record):
    """A program is over."""

    type: Literal["left"]
    program: Text
    processes: Count


class FailedRecord(_Record):
    """A step of a soak's program failed; nanoseconds."""

    type: Literal["failed"]
    program: Text
    phase: Phase
    round: Count
    status: Annotated[int, Field(ge=0, le=255, strict=True)]
    elapsed: Count
    hex: Annotated[str, Field(pattern=r"^([0-9a-f]{2})*$", max_length=2 * MOST_TAIL)]


class TallyRecord(_Record):
    """The tally of a soak's program so far; nanoseconds."""

    type: Literal["tally"]
    program: Text
    rounds: Count
    failures: Count
    elapsed: Count
    longest: Count
    progress: Progress


class MemoryRecord(_Record):
    """A look at memory in a soak; nanoseconds."""

    type: Literal["memory"]
    elapsed: Count
    at_rest: bool
    kb: dict[MemoryField, Kilobytes]
    tasks: Count | None = None
    files: Count | None = None
    tainted: Count | None = None


class EndRecord(_Record):
    """The last record: the agent did everything that was requested."""

    type: Literal["end"]
    records: Count


Record = Annotated[
    HelloRecord
    | BenchmarkRecord
    | SampleRecord
    | UnsupportedRecord
    | BrokenRecord
    | StepRecord
    | OutputRecord
    | ExitedRecord
    | LeftRecord
    | FailedRecord
    | TallyRecord
    | MemoryRecord
    | EndRecord,
    Field(discriminator="type"),
]
RECORD: TypeAdapter[Any] = TypeAdapter(Record)


class StreamFault(ValueError):
    """The fault of a stream; the text names the line."""


def parse_record(line: bytes, number: int) -> Any:
    """Return the record of one line. Raise StreamFault."""
    place = f"agent record {number}"
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise StreamFault(f"{place} is not UTF-8 (byte {error.start})") from None
    try:
        return RECORD.validate_json(text)
    except ValidationError as error:
        raise StreamFault(f"{place}: {_describe_fault(error, text)}") from None


def _describe_fault(error: ValidationError, text: str) -> str:
    version = _version(text)
    if version is not None and version != PROTOCOL:
        return f"version {version}, but this kdyno reads version {PROTOCOL}: agent and kdyno must be of one release"
    return first_fault(error, "the record")


def _version(text: str) -> int | None:
    class Versioned(Frozen):
        model_config = {"extra": "ignore"}
        v: int

    try:
        return Versioned.model_validate_json(text).v
    except ValidationError:
        return None


class RecordReader:
    """The records of a stream that may still grow. Of a line without an end it keeps LONGEST_LINE bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._line = b""
        self._number = 0

    def ready(self) -> Iterator[Any]:
        """Yield the records that are there by now, one by one. Raise StreamFault at the first invalid one."""
        while piece := self._file.readline(LONGEST_LINE + 1 - len(self._line)):
            self._line += piece
            if len(self._line) > LONGEST_LINE:
                raise StreamFault(f"agent record {self._number} is longer than {LONGEST_LINE} bytes")
            if self._line.endswith(b"\n"):
                record = parse_record(self._line, self._number)
                self._line, self._number = b"", self._number + 1
                yield record

    def close(self) -> None:
        """Raise StreamFault if the stream ends within a record."""
        if self._line:
            raise StreamFault(f"agent record {self._number} is truncated")


def failure_of(record: FailedRecord) -> Failure:
    """Return the failure that a record reports."""
    return Failure(
        program=record.program,
        phase=record.phase,
        round=record.round,
        status=record.status,
        elapsed=record.elapsed / NANOSECONDS,
        tail=bytes.fromhex(record.hex),
    )


def tally_of(record: TallyRecord) -> Tally:
    """Return the tally that a record reports."""
    return Tally(
        rounds=record.rounds,
        failures=record.failures,
        elapsed=record.elapsed / NANOSECONDS,
        longest=record.longest / NANOSECONDS,
        progress=record.progress,
    )


def look_of(record: MemoryRecord) -> MemoryLook:
    """Return the look at memory that a record reports."""
    return MemoryLook(
        elapsed=record.elapsed / NANOSECONDS,
        at_rest=record.at_rest,
        kb=record.kb,
        tasks=record.tasks,
        files=record.files,
        tainted=record.tainted,
    )
