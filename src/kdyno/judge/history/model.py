"""The history as data: axes, lines, points, and changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import AwareDatetime

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import LaneName
from kdyno.base.measurement import Direction
from kdyno.store.triage import TriageState


class HistoryKernel(Frozen):
    """A kernel on an axis: a source with its patches, whatever recipe it was built by."""

    identity: str
    """`git:<commit>`, `tarball:<sha256>` or `tree:<sha256>`; with a digest of the patches after it if there are any."""
    version: str
    origin: str
    """The name for people: package version, `git describe`, file name."""
    spec: str
    """The name that was requested."""
    first_run: AwareDatetime

    @property
    def name(self) -> str:
        """The name of a kernel on its axis; patched ones of one source differ by a digest."""
        _, mark, patches = self.identity.partition(" + ")
        return f"{self.origin or self.version}{f' + patches {patches[:6]}' if mark else ''}"

    @property
    def commit(self) -> str | None:
        """Return the commit of a source of git without patches; None for any other."""
        kind, _, name = self.identity.partition(":")
        return name if kind == "git" and " " not in name else None


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One kernel by one recipe: the geometric mean over its boots, in the benchmark's unit."""

    kernel: int
    """The place of the kernel on the axis."""
    value: float
    low: float | None
    """The ends of the 95 % interval; None for a single boot."""
    high: float | None
    boots: int
    run: str
    """The newest run with it."""
    compiler: str
    config: str
    """The base configuration, and the digest of the whole one."""


@dataclass(frozen=True)
class HistoryLine:
    """A recipe over kernels, for one benchmark."""

    recipe: str
    """The name of the variant; with a digest of the recipe if others have the same name."""
    settings: dict[str, Any]
    """The recipe without its source, as far as it isn't the default."""
    variant: str
    points: tuple[HistoryPoint, ...]
    """By their kernels."""


@dataclass(frozen=True)
class HistoryBenchmark:
    """A benchmark on one axis."""

    name: str
    test: str
    unit: str
    direction: Direction
    description: str
    lines: tuple[HistoryLine, ...]


@dataclass(frozen=True)
class HistoryAxis:
    """What may be compared: one lane, machine, agent and workload; where the host changes samples, one host, too."""

    id: str
    lane: LaneName
    is_exact: bool
    """The same boot gives the same samples, so any difference is one of the kernels."""
    margin: float
    """The largest equivalence margin among its runs."""
    machine: dict[str, Any]
    host: dict[str, Any] | None
    """None if the host doesn't change samples."""
    title: str
    """Lane and machine in a few words."""
    runs: int
    newest: datetime
    kernels: tuple[HistoryKernel, ...]
    benchmarks: tuple[HistoryBenchmark, ...]
    left_out: int
    """Kernels of a noisy axis that are before its window, where no change is looked for."""


class ChangedBenchmark(Frozen):
    benchmark: str
    recipe: str
    unit: str
    before: float
    after: float
    ratio: float
    """The value after over that before: of the same seeds where the axis is exact, else of the mean levels."""
    is_worse: bool


class TriageEntry(Frozen):
    """What somebody said last of a change."""

    state: TriageState
    owner: str
    note: str
    author: str
    written: AwareDatetime


class HistoryChange(Frozen):
    """A place between two kernels where benchmarks change; the largest change first."""

    id: str
    """A digest of the axis and the two kernels."""
    axis: str
    lane: LaneName
    title: str
    is_exact: bool
    before: HistoryKernel
    after: HistoryKernel
    benchmarks: tuple[ChangedBenchmark, ...]
    worse: int
    better: int
    also_differs: tuple[str, ...]
    """Other differences of the two kernels than the source: compiler, configuration."""
    run_before: str
    run_after: str
    bisect: str
    """The command that finds the commit; empty if the kernels aren't commits of one repository."""
    explain: str
    """The commands that explain the largest change."""
    triage: TriageEntry | None = None
    """None: nobody has said anything yet."""

    @property
    def is_open(self) -> bool:
        return self.triage is None or self.triage.state == "open"


class AxisSummary(Frozen):
    """An axis without its points."""

    id: str
    lane: LaneName
    title: str
    machine: dict[str, Any]
    host: dict[str, Any] | None
    """None if the host doesn't change samples."""
    runs: int
    newest: AwareDatetime
    kernels: int
    benchmarks: int
    recipes: int


class HistoryReport(Frozen):
    """The document that `kdyno history --json` prints."""

    v: Literal[1] = 1
    runs: int
    without_source: int
    """Runs without a kernel of a known source: recordings, and settings of this host."""
    false_alarm_rate: float
    """The share of axes without a change on which a noisy lane has an alarm, by permutation."""
    axes: tuple[AxisSummary, ...]
    """The axis with the newest run first."""
    changes: tuple[HistoryChange, ...]
    """The newest kernel first."""


@dataclass(frozen=True)
class History:
    """Everything that the pages show."""

    report: HistoryReport
    axes: tuple[HistoryAxis, ...]
    """In the order of the report."""
