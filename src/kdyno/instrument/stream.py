"""The agent stream: JSON lines that a guest sends, read as the hostile input that they are.

Each line is one record with a version and a type. Nothing of a stream is trusted beyond what validates: a line that is
too long, not UTF-8, not JSON, of another version or of unknown shape ends the reading with a StreamFault that names the
line. So does one that the job didn't ask for: a benchmark, an iteration, a step of a program. What benchmarks are comes
from the agent's catalogue, and a stream may only agree with it; so a stream can't fill the memory either. The record
`end` says how many came before it, so that a stream that was cut short is never taken for a whole one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from kdyno.frozen import Frozen
from kdyno.instrument.job import PROTOCOL, Program, Soak
from kdyno.instrument.soak import (
    MOST_TAIL,
    NANOSECONDS,
    Failure,
    Kilobytes,
    MemoryField,
    MemoryLook,
    Progress,
    SoakReader,
    SoakReport,
    Tally,
)
from kdyno.instrument.steps import Phase, StepReport, Steps, Unasked
from kdyno.lanes import LANES, Lane
from kdyno.measurement import Benchmark, Direction, Sample
from kdyno.text import clean

LONGEST_LINE = 1 << 20
LONGEST_TEXT = 2000
COUNT_MAX = (1 << 63) - 1

Name = Annotated[str, Field(pattern=r"^[a-z0-9_-]+(\.[a-z0-9_]+)*$", max_length=80)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(lambda text: clean(text)[:LONGEST_TEXT])]
"""What a guest says in words, as one line that may be shown and stored: without escape sequences, NUL, controls."""
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
    """What a step writes."""

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
    """What a program of a soak did so far; nanoseconds."""

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
    """Last record: the agent did all it was asked to do."""

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
    """What is wrong with a stream, and in which line."""


@dataclass(frozen=True)
class Asked:
    """What a job asks of the agent, and so all that a stream may say."""

    lane: Lane
    iterations: int
    """Samples of each benchmark."""
    benchmarks: tuple[Benchmark, ...] = ()
    """Those of the tests, in the order in which the agent runs them, which is how the emulated PMU numbers them."""
    programs: tuple[Program, ...] = ()
    """In the order in which they are run, after the benchmarks. Those that are measured are benchmarks, too, with the
    numbers that come next."""
    soak: Soak | None = None
    """The programs are run side by side instead, and none is measured."""

    def of_programs(self) -> dict[str, tuple[Benchmark, int]]:
        """By name: the benchmarks that programs are measured as, and how many samples each has."""
        unit = LANES[self.lane].clock.cost_unit
        return {
            measured.benchmark: (
                Benchmark(
                    name=measured.benchmark,
                    test=program.name,
                    unit=unit,
                    direction="lower",
                    description=measured.description,
                ),
                program.runs,
            )
            for program in self.programs
            if (measured := program.measured)
        }


class AgentReport(Frozen):
    """A stream, read: as much of it as is sound, and what is wrong with the rest."""

    hello: HelloRecord | None = None
    benchmarks: tuple[Benchmark, ...] = ()
    samples: tuple[Sample, ...] = ()
    unsupported: dict[str, str] = {}
    broken: dict[str, str] = {}
    steps: tuple[StepReport, ...] = ()
    """Of the programs, in order."""
    left: dict[str, int] = {}
    """By program that is over: how many processes it left behind, which were killed."""
    soak: SoakReport | None = None
    """None unless the job asked for one."""
    complete: bool = False
    fault: str | None = None


def parse_record(line: bytes, number: int) -> Any:
    """One line to one record; raises StreamFault."""
    where = f"agent record {number}"
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


class RecordReader:
    """The records of a stream that may still grow. Of a line that has no end it keeps LONGEST_LINE bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._line = b""
        self._number = 0

    def ready(self) -> Iterator[Any]:
        """The records that are there by now, one by one; raises StreamFault at the first unsound one."""
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


def read_stream(path: Path, asked: Asked) -> AgentReport:
    """Read a stream file to its end or to its first fault; never raises for what a guest wrote."""
    try:
        with path.open("rb") as file:
            return _Reader(asked).read(_records(file))
    except FileNotFoundError:
        return AgentReport(fault="no stream")


def _records(file: BinaryIO) -> Iterator[Any]:
    reader = RecordReader(file)
    yield from reader.ready()
    reader.close()


class _Reader:
    """Collects records and checks what one line alone can't show: that it was asked for, order, counts."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        of_programs = asked.of_programs()
        self.expected = (*asked.benchmarks, *(benchmark for benchmark, _ in of_programs.values()))
        self.samples_of = {name: runs for name, (_, runs) in of_programs.items()}
        """By benchmark that is a program: how many were asked for."""
        self.hello: HelloRecord | None = None
        self.benchmarks: dict[str, Benchmark] = {}
        self.samples: dict[tuple[str, int], Sample] = {}
        self.unsupported: dict[str, str] = {}
        self.broken: dict[str, str] = {}
        self.steps = Steps(() if asked.soak else asked.programs)
        self.soak = SoakReader(asked.soak, asked.programs)
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
            steps=self.steps.reports,
            left=self.steps.left,
            soak=self.soak.report,
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
                if record.lane != self.asked.lane:
                    raise StreamFault(f"{where}: it measures in lane {record.lane}, the job says {self.asked.lane}")
            case BenchmarkRecord():
                self._begin(where, record)
            case SampleRecord():
                self._sample(where, record)
            case UnsupportedRecord():
                self._give_up(where, record, self.unsupported)
            case BrokenRecord():
                self._give_up(where, record, self.broken)
            case EndRecord():
                self._end(where, number, record)
            case _:
                try:
                    self._hear(record)
                except Unasked as error:
                    raise StreamFault(f"{where}: {error}") from None

    def _end(self, where: str, number: int, record: EndRecord) -> None:
        if record.records != number:
            raise StreamFault(f"{where}: the agent counted {record.records} records, {number} came")
        if due := self._due():
            raise StreamFault(f"{where}: the end, where {due.name} was asked for")
        if program := self.steps.due():
            raise StreamFault(f"{where}: the end, where the program {program.name} was asked for")
        if running := self.soak.due():
            raise StreamFault(f"{where}: the end, where the program {running} still runs")
        self.complete = True

    def _due(self) -> Benchmark | None:
        """The benchmark that comes next."""
        done = len(self.benchmarks)
        return self.expected[done] if done < len(self.expected) else None

    def _begin(self, where: str, record: BenchmarkRecord) -> None:
        due = self._due()
        if due is None or record.name != due.name:
            expected = due.name if due else "nothing more"
            raise StreamFault(f"{where}: it begins {record.name} where {expected} was asked for")
        for what in ("test", "unit", "direction"):
            told, known = getattr(record, what), getattr(due, what)
            if told != known:
                raise StreamFault(f"{where}: it says {what} {told} of {due.name}, which is {known}")
        self.benchmarks[due.name] = due

    def _sample(self, where: str, record: SampleRecord) -> None:
        self._require_begun(where, record.benchmark)
        which = f"{record.benchmark} iteration {record.iteration}"
        asked = self.samples_of.get(record.benchmark, self.asked.iterations)
        if record.iteration >= asked:
            raise StreamFault(f"{where}: {which}, of {asked} that were asked for")
        key = (record.benchmark, record.iteration)
        if key in self.samples:
            raise StreamFault(f"{where}: {which} comes twice")
        self.samples[key] = Sample(**record.model_dump(exclude={"v", "type"}))

    def _give_up(self, where: str, record: UnsupportedRecord | BrokenRecord, given_up: dict[str, str]) -> None:
        self._require_begun(where, record.benchmark)
        if record.benchmark in given_up:
            raise StreamFault(f"{where}: {record.benchmark} is {record.type} twice")
        given_up[record.benchmark] = record.reason

    def _require_begun(self, where: str, benchmark: str) -> None:
        if benchmark not in self.benchmarks:
            raise StreamFault(f"{where}: {benchmark} was not declared")

    def _hear(self, record: _Record) -> None:
        """What a record says of programs. Raises Unasked."""
        program = self.steps.due()
        if (due := self._due()) and (program is None or due.test == program.name or due in self.asked.benchmarks):
            raise Unasked(f"it speaks of a program where {due.name} was asked for")
        match record:
            case StepRecord():
                self.steps.begin(record.program, record.phase, record.run)
            case OutputRecord():
                self.steps.hear(record.stream, bytes.fromhex(record.hex))
            case ExitedRecord():
                self.steps.end(**record.model_dump(exclude={"v", "type"}))
            case LeftRecord():
                self.steps.over(record.program, record.processes)
            case FailedRecord():
                self.soak.fail(failure_of(record))
            case TallyRecord():
                self.soak.tally(record.program, tally_of(record))
            case MemoryRecord():
                self.soak.look(look_of(record))


def failure_of(record: FailedRecord) -> Failure:
    """The failure that a record tells of."""
    return Failure(
        program=record.program,
        phase=record.phase,
        round=record.round,
        status=record.status,
        elapsed=record.elapsed / NANOSECONDS,
        tail=bytes.fromhex(record.hex),
    )


def tally_of(record: TallyRecord) -> Tally:
    """The tally that a record tells of."""
    return Tally(
        rounds=record.rounds,
        failures=record.failures,
        elapsed=record.elapsed / NANOSECONDS,
        longest=record.longest / NANOSECONDS,
        progress=record.progress,
    )


def look_of(record: MemoryRecord) -> MemoryLook:
    """The look at memory that a record tells of."""
    return MemoryLook(
        elapsed=record.elapsed / NANOSECONDS,
        at_rest=record.at_rest,
        kb=record.kb,
        tasks=record.tasks,
        files=record.files,
        tainted=record.tainted,
    )
