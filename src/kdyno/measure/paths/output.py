"""The output of a kernel that ran its paths, read as the hostile input that it is.

data/paths/README.md describes the lines. Each must be one that the job asked for, in the kernel's order; the first that
isn't ends the reading with a fault. The last line says that the kernel came to its end.

A sample is in cycles of the core, whatever its clock does: before and after each repetition stands a chain of additions
that wait for each other, a cycle each. Where the two disagree the clock moved, and the sample is left out. As many
additions in four chains show how much of the core was free: a program on its other hardware thread, which may belong to
another guest, takes execution units away. Where they took longer than on a core of one's own, the sample is left out,
too. How long they take there is a fact of the core: the least of a boot tells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kdyno.base.lanes import Clock, LaneName
from kdyno.base.measurement import Benchmark, Sample
from kdyno.base.text import clean
from kdyno.measure.guest.stream import AgentReport
from kdyno.measure.guest.stream_records import HelloRecord
from kdyno.measure.paths.table import KernelPath

VERSION = "1"
"""The version of the output; main.c of data/paths has the same."""
NUMBER = r"([0-9]{1,18})"
HELLO = re.compile(rf"kdyno-paths ([0-9]+) (\S{{1,200}}) {NUMBER}")
SAMPLE = re.compile(rf"kdyno-path (\S{{1,80}}) {' '.join([NUMBER] * 8)}")
ERROR = re.compile(r"kdyno-path-error (\S{1,80}) (.{1,200})")
DONE = "kdyno-paths done"
LONGEST_LINE = 400
CLOCK_MOVED = 0.02
"""The relative difference of the chains before and after a repetition above which the clock moved. A tick of the host
in one of them makes it longer by more; the sample is left out as well."""
SHARED_EXCESS = 0.1
"""How much longer additions in four chains take than on the core alone, above which somebody else is on the core. On a
Zen 4 with builds on the other hardware thread the spread between boots was 15 % without this bound and 1 % with it
(medians of 96 paths)."""
MOST_ALONE = 0.3
"""The time of additions in four chains by that in one, above which nobody is alone on any core. Alone it is 0.25 on a
Zen 4, where each addition finds a free unit. On Golden Cove, which probably chooses the unit before it knows which is
free, it is 0.29, and 0.32 to 0.37 with somebody else."""
DISTURBED_SHARE = 0.2
"""The share of a path's repetitions above which the path was disturbed. What comes and goes within repetitions is
hardly seen at their edges. On a Zen 4, medians of the unmarked ones spread by 4 % between boots where a fifth was
marked, and by 1 % below a tenth."""
FEWEST = 3
"""The fewest samples that a path is judged by."""


class OutputFault(ValueError):
    """The fault of an output; the text names the line."""


@dataclass(frozen=True)
class RequestedPaths:
    """What a job asked for."""

    lane: LaneName
    clock: Clock
    """The clock of the samples."""
    paths: Sequence[KernelPath]
    """In the order of the table."""
    repetitions: int
    is_timed: bool
    """Whether the core's clock counts: not under an emulator, which counts itself."""


@dataclass(frozen=True)
class PathsOutput:
    """An output that was read."""

    report: AgentReport
    moved: int = 0
    """The samples that were left out, since the core's clock moved."""
    shared: int = 0
    """Those that were left out since somebody else was on the core."""
    disturbed: tuple[str, ...] = ()
    """The paths of which more than DISTURBED_SHARE of the repetitions were left out."""


@dataclass(frozen=True)
class _Repetition:
    """One line of a sample."""

    sample: Sample
    has_moved: bool
    """The core's clock moved."""
    chain: int
    """The time of additions that wait for each other, the less of both, in ticks."""
    wide: tuple[int, int]
    """The time of as many in four chains, before and after, in ticks."""

    @property
    def wide_share(self) -> float:
        return max(self.wide) / self.chain


@dataclass
class _Reading:
    hello: HelloRecord | None = None
    repetitions: dict[str, list[_Repetition]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    complete: bool = False


def read_output(path: Path, asked: RequestedPaths) -> PathsOutput:
    """Read an output to its end or to its first fault; no content of it raises an error."""
    reading, fault = _Reading(), None
    try:
        with path.open("rb") as file:
            _read(iter(lambda: file.readline(LONGEST_LINE), b""), asked, reading)
    except FileNotFoundError:
        fault = "no stream"
    except OutputFault as error:
        fault = str(error)
    samples, moved, shared, disturbed = list[Sample](), 0, 0, list[str]()
    most = (1 + SHARED_EXCESS) * _wide_share_alone(reading) if asked.is_timed else math.inf
    for name, repetitions in reading.repetitions.items():
        still = [repetition for repetition in repetitions if not repetition.has_moved]
        alone = [repetition for repetition in still if repetition.wide_share <= most]
        moved += len(repetitions) - len(still)
        shared += len(still) - len(alone)
        if len(repetitions) - len(alone) > DISTURBED_SHARE * asked.repetitions:
            disturbed.append(name)
        if len(alone) >= min(FEWEST, asked.repetitions):
            samples += [repetition.sample for repetition in alone]
        else:
            reading.broken[name] = (
                f"of {asked.repetitions} repetitions the core's clock moved in {len(repetitions) - len(still)}, and "
                f"somebody else was on the core in {len(still) - len(alone)}"
            )
    report = AgentReport(
        hello=reading.hello,
        benchmarks=tuple(_benchmarks(asked)),
        samples=tuple(samples),
        broken=reading.broken,
        complete=reading.complete and fault is None,
        fault=fault,
    )
    return PathsOutput(report, moved, shared, tuple(disturbed))


def _wide_share_alone(reading: _Reading) -> float:
    """Return the time of four chains by that of one on this core alone: the least of each, since others add time."""
    repetitions = [repetition for of_path in reading.repetitions.values() for repetition in of_path]
    if not repetitions:
        return MOST_ALONE
    narrow = min(repetition.chain for repetition in repetitions)
    return min(MOST_ALONE, min(min(repetition.wide) for repetition in repetitions) / narrow)


def _benchmarks(asked: RequestedPaths) -> Iterable[Benchmark]:
    return (path.benchmark(asked.clock) for path in asked.paths)


def _read(lines: Iterable[bytes], asked: RequestedPaths, reading: _Reading) -> None:
    wanted = {path.name: path for path in asked.paths}
    repetition_of = dict.fromkeys(wanted, 0)
    for number, line in enumerate(lines, 1):
        place, text = f"line {number}", line.decode("ascii", "replace")
        if not text.endswith("\n"):
            raise OutputFault(f"{place} is cut short, or longer than {LONGEST_LINE} bytes")
        text = text[:-1]
        if reading.complete:
            raise OutputFault(f"{place} comes after the end")
        if reading.hello is None:
            reading.hello = _hello(place, text, asked)
        elif text == DONE:
            _require_whole(place, repetition_of, asked, reading)
            reading.complete = True
        elif match := ERROR.fullmatch(text):
            if match[1] not in wanted or match[1] in reading.broken:
                raise OutputFault(f"{place}: {clean(text)}")
            reading.broken[match[1]] = clean(match[2])
        else:
            _sample(place, text, wanted, repetition_of, asked, reading)


def _hello(place: str, text: str, asked: RequestedPaths) -> HelloRecord:
    match = HELLO.fullmatch(text)
    if match is None:
        raise OutputFault(f"{place} is not the first line of a kernel that runs paths: {clean(text)}")
    version, release, count = match.groups()
    if version != VERSION:
        raise OutputFault(f"{place}: version {version}, but this kdyno reads version {VERSION}")
    if int(count) != len(asked.paths):
        raise OutputFault(f"{place}: it runs {count} paths, {len(asked.paths)} were requested")
    return HelloRecord(
        v=1, type="hello", agent="kdyno-paths", kernel=clean(release), lane=asked.lane, cpus=1, init=False
    )


def _require_whole(place: str, repetition_of: dict[str, int], asked: RequestedPaths, reading: _Reading) -> None:
    for name, done in repetition_of.items():
        if done != asked.repetitions and name not in reading.broken:
            raise OutputFault(f"{place}: the end after {done} of {asked.repetitions} repetitions of {name}")


def _sample(
    place: str,
    text: str,
    wanted: dict[str, KernelPath],
    repetition_of: dict[str, int],
    asked: RequestedPaths,
    reading: _Reading,
) -> None:
    match = SAMPLE.fullmatch(text)
    if match is None:
        raise OutputFault(f"{place} is none that kernels of kdyno write: {clean(text)}")
    name = match[1]
    numbers = [int(number) for number in match.groups()[1:]]
    repetition, operations, ticks, before, after, length, wide_before, wide_after = numbers
    if name not in wanted or name in reading.broken or repetition != repetition_of[name]:
        raise OutputFault(f"{place}: {clean(name)} repetition {repetition}, which was not expected")
    if repetition >= asked.repetitions or not all(numbers[1:]):
        raise OutputFault(f"{place}: {clean(text)}")
    repetition_of[name] += 1
    elapsed = max(1, round(ticks * 2 * length / (before + after))) if asked.is_timed else ticks
    work = wanted[name].work(operations)
    reading.repetitions.setdefault(name, []).append(
        _Repetition(
            Sample(benchmark=name, iteration=repetition, elapsed=elapsed, work=work),
            has_moved=asked.is_timed and abs(after - before) > CLOCK_MOVED * min(before, after),
            chain=min(before, after),
            wide=(wide_before, wide_after),
        )
    )
