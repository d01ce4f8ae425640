"""The agent stream, read as the hostile input that it is: the records that a job requested, in their order, up to the
end.

Nothing of a stream is trusted that isn't validated. A malformed record ends the reading with a StreamFault, and so does
one that the job didn't request: a benchmark, an iteration, a step of a program. The agent's catalogue defines the
benchmarks, and a stream may only agree with it; so a stream can't fill the memory either. The record `end` says how
many came before it, so that a truncated stream is never taken for a whole one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import LANES, LaneName
from kdyno.base.measurement import Benchmark, Sample
from kdyno.measure.guest.job import Program, Soak
from kdyno.measure.guest.soak import SoakReader, SoakReport
from kdyno.measure.guest.steps import StepReport, Steps, Unasked
from kdyno.measure.guest.stream_records import (
    BenchmarkRecord,
    BrokenRecord,
    EndRecord,
    ExitedRecord,
    FailedRecord,
    HelloRecord,
    LeftRecord,
    MemoryRecord,
    OutputRecord,
    RecordReader,
    SampleRecord,
    StepRecord,
    StreamFault,
    TallyRecord,
    UnsupportedRecord,
    failure_of,
    look_of,
    tally_of,
)


@dataclass(frozen=True)
class Asked:
    """The requests of a job, and so all records that a stream may hold."""

    lane: LaneName
    iterations: int
    """Samples of each benchmark."""
    benchmarks: tuple[Benchmark, ...] = ()
    """The benchmarks of the tests, in the order in which the agent runs them: the emulated PMU numbers them in this
    order.
    """
    programs: tuple[Program, ...] = ()
    """The programs in the order in which they run, after the benchmarks. Measured programs are benchmarks, too, with
    the numbers that follow.
    """
    soak: Soak | None = None
    """If given, the programs run side by side instead, and none is measured."""

    def program_benchmarks(self) -> dict[str, tuple[Benchmark, int]]:
        """Return the benchmark of each measured program, by its name, and the number of its samples."""
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
    """A stream that was read: its valid part, and the fault that ended it."""

    hello: HelloRecord | None = None
    benchmarks: tuple[Benchmark, ...] = ()
    samples: tuple[Sample, ...] = ()
    unsupported: dict[str, str] = {}
    broken: dict[str, str] = {}
    steps: tuple[StepReport, ...] = ()
    """The steps of the programs, in order."""
    left: dict[str, int] = {}
    """The number of processes that each ended program left behind, which were killed."""
    soak: SoakReport | None = None
    """None unless the job requested a soak."""
    complete: bool = False
    fault: str | None = None


def read_stream(path: Path, expected: Asked) -> AgentReport:
    """Read a stream file to its end or to its first fault; no content of it raises an error."""
    try:
        with path.open("rb") as file:
            return _Reader(expected).read(_records(file))
    except FileNotFoundError:
        return AgentReport(fault="no stream")


def _records(file: BinaryIO) -> Iterator[Any]:
    reader = RecordReader(file)
    yield from reader.ready()
    reader.close()


class _Reader:
    """Collects records and checks what one line alone can't show: that each was requested, their order and counts."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        of_programs = asked.program_benchmarks()
        self.expected = (*asked.benchmarks, *(benchmark for benchmark, _ in of_programs.values()))
        self.samples_of = {name: runs for name, (_, runs) in of_programs.items()}
        """The number of requested samples of each benchmark that is a program."""
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
        place = f"agent record {number}"
        if self.complete:
            raise StreamFault(f"{place} comes after the end")
        if (self.hello is None) != isinstance(record, HelloRecord):
            raise StreamFault(f"{place}: the stream must start with one hello")
        match record:
            case HelloRecord():
                self.hello = record
                if record.lane != self.asked.lane:
                    raise StreamFault(f"{place}: it measures in lane {record.lane}, the job says {self.asked.lane}")
            case BenchmarkRecord():
                self._begin(place, record)
            case SampleRecord():
                self._sample(place, record)
            case UnsupportedRecord():
                self._give_up(place, record, self.unsupported)
            case BrokenRecord():
                self._give_up(place, record, self.broken)
            case EndRecord():
                self._end(place, number, record)
            case _:
                try:
                    self._hear(record)
                except Unasked as error:
                    raise StreamFault(f"{place}: {error}") from None

    def _end(self, place: str, number: int, record: EndRecord) -> None:
        if record.records != number:
            raise StreamFault(f"{place}: the agent counted {record.records} records, {number} came")
        if due := self._due():
            raise StreamFault(f"{place}: the end, where {due.name} was expected")
        if program := self.steps.due():
            raise StreamFault(f"{place}: the end, where the program {program.name} was expected")
        if running := self.soak.due():
            raise StreamFault(f"{place}: the end, where the program {running} still runs")
        self.complete = True

    def _due(self) -> Benchmark | None:
        """Return the benchmark that comes next."""
        done = len(self.benchmarks)
        return self.expected[done] if done < len(self.expected) else None

    def _begin(self, place: str, record: BenchmarkRecord) -> None:
        due = self._due()
        if due is None or record.name != due.name:
            expected = due.name if due else "nothing more"
            raise StreamFault(f"{place}: it begins {record.name} where {expected} was expected")
        for what in ("test", "unit", "direction"):
            stated, known = getattr(record, what), getattr(due, what)
            if stated != known:
                raise StreamFault(f"{place}: it says {what} {stated} of {due.name}, which is {known}")
        self.benchmarks[due.name] = due

    def _sample(self, place: str, record: SampleRecord) -> None:
        self._require_begun(place, record.benchmark)
        which = f"{record.benchmark} iteration {record.iteration}"
        expected = self.samples_of.get(record.benchmark, self.asked.iterations)
        if record.iteration >= expected:
            raise StreamFault(f"{place}: {which}, of {expected} that were requested")
        key = (record.benchmark, record.iteration)
        if key in self.samples:
            raise StreamFault(f"{place}: {which} comes twice")
        self.samples[key] = Sample(**record.model_dump(exclude={"v", "type"}))

    def _give_up(self, place: str, record: UnsupportedRecord | BrokenRecord, given_up: dict[str, str]) -> None:
        self._require_begun(place, record.benchmark)
        if record.benchmark in given_up:
            raise StreamFault(f"{place}: {record.benchmark} is {record.type} twice")
        given_up[record.benchmark] = record.reason

    def _require_begun(self, place: str, benchmark: str) -> None:
        if benchmark not in self.benchmarks:
            raise StreamFault(f"{place}: {benchmark} was not declared")

    def _hear(self, record: Frozen) -> None:
        """Take a record about programs. Raise Unasked."""
        program = self.steps.due()
        if (due := self._due()) and (program is None or due.test == program.name or due in self.asked.benchmarks):
            raise Unasked(f"it reports on a program where {due.name} was expected")
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
