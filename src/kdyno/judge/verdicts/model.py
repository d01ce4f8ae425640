"""The report as data: everything that a renderer may show, so that it need not look anything up."""

from __future__ import annotations

import json
from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.base.measurement import AnyBenchmark, Benchmark, Correction
from kdyno.judge.stats.compare import Comparison, GeometricMean, Judgement
from kdyno.judge.stats.diagnostics.tables import Analysis
from kdyno.judge.verdicts.checks import KernelCheck
from kdyno.judge.verdicts.contamination import Flag
from kdyno.judge.verdicts.selftest import SelfTest
from kdyno.measure.cycles.budget import Budgets
from kdyno.store.records import BootRecord, RunRecord


class BootValue(Frozen):
    """The value of a benchmark in one boot: the median over its iterations, in the benchmark's unit."""

    variant: str
    benchmark: str
    block: int | None
    order: int | None
    """Place in the order of measuring."""
    layout: int | None
    value: float


class ConsoleText(Frozen):
    """The end of the console of a boot that failed or was lost, cleaned of everything that could steer a terminal."""

    variant: str
    block: int
    attempt: int
    reason: str
    text: str


class ConfirmedVariant(Frozen):
    """The gain of a variant in a run, and on a processor: geometric means of speeds, 1.16 is 16 % faster."""

    variant: str
    gain: float | None
    """In the run; None if it has no mean."""
    benchmarks: int
    """The number of benchmarks in it."""
    silicon: float | None
    """On the processor; None if there is no mean."""
    low: float | None
    """The ends of its interval; None without a known spread."""
    high: float | None
    paths: int
    """The number of paths in it."""
    sentence: str


class Confirmation(Frozen):
    """The gains of a run beside those of the same recipes on this host's processor."""

    run: str | None
    """The run on the processor; None if no variant could be had there."""
    cpu: str | None
    notices: tuple[str, ...]
    """The notices of that run."""
    variants: tuple[ConfirmedVariant, ...]
    left_out: dict[str, str]
    """Variants that can't be had there, with the reasons."""


class Report(Frozen):
    """Values and the judge's verdicts on them, whoever measured them."""

    title: str
    measured: str
    """The kind of the values, in one line: the lane of a run, the format of a file."""
    baseline: str
    variants: tuple[str, ...]
    margin: float
    """Equivalence margin as a fraction."""
    alpha: float
    """Error rate of the verdicts: the family-wise one, or what a look of a group-sequential run may spend."""
    confidence: float
    """Coverage of the intervals."""
    correction: Correction
    notices: tuple[str, ...]
    """Facts that a reader must know first: the run's own notices, and those added by the report."""
    benchmarks: tuple[AnyBenchmark, ...]
    comparisons: tuple[Comparison, ...]
    geometric_means: tuple[GeometricMean, ...]
    values: tuple[BootValue, ...]
    analyses: tuple[Analysis, ...]
    """By benchmark: analysis of variance, all pairs, assumptions, power."""

    @property
    def family(self) -> int:
        """How many comparisons share alpha; 1 if none does."""
        return Judgement(comparisons=self.comparisons, geometric_means=self.geometric_means).family

    @property
    def others(self) -> tuple[str, ...]:
        """The variants that are compared with the baseline."""
        return tuple(name for name in self.variants if name != self.baseline)


class RunReport(Report):
    """One run, judged. `kdyno report --json` prints it."""

    schema_version: Literal[2] = 2
    benchmarks: tuple[Benchmark, ...]
    run: RunRecord
    flags: tuple[Flag, ...]
    """Boots that other work of the host disturbed."""
    selftest: SelfTest | None
    """The last self-test on this host in this lane; None if there was none."""
    link_order: SelfTest | None
    """The last self-test of link order on this host, in this lane and clock; None if there was none, and if layouts
    were sampled, or all variants are one image.
    """
    checks: tuple[KernelCheck, ...]
    """The results of the kernels' own tests, one for each image that has them."""
    boots: tuple[BootRecord, ...]
    consoles: tuple[ConsoleText, ...]
    budgets: Budgets | None = None
    """Budgets of modelled cycles; None unless boots of the run counted all events (see
    understand/explain/budgets.py).
    """
    confirmation: Confirmation | None = None
    """The gains on this host's processor; None unless such a run is on record."""
    reproduce: str
    """One command line that repeats the run."""


RunReports = tuple[RunReport, ...]
"""The document that `kdyno compare --json` prints."""


class FileReport(Report):
    """Somebody else's data, judged. `kdyno judge FILE --json` prints it."""

    schema_version: Literal[1] = 1
    files: tuple[str, ...]
    """As named by the user."""
    sha256: tuple[str, ...]
    read_as: str
    """The format that they were read as, and how that was found out."""
    columns: dict[str, str]
    """The meaning that was found for each column, by role; empty for formats without a choice."""


def to_json(report: Report) -> str:
    """Return the report as JSON in plain ASCII, so that a guest's text can't steer a terminal."""
    return json.dumps(report.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"
