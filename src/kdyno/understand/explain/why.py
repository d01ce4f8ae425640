"""The reasons for differences of a run's variants, for the HTML report. They need PMU records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kdyno.base.errors import KdynoError
from kdyno.judge.stats.compare import Comparison
from kdyno.judge.stats.verdict import DIFFERENT
from kdyno.judge.verdicts.model import RunReport
from kdyno.judge.verdicts.rows import VerdictRow, rows_of
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import BootRecord
from kdyno.understand.explain import rows
from kdyno.understand.explain.align import align_regions
from kdyno.understand.explain.compare import ComparedSubject, explain
from kdyno.understand.explain.model import Explanation
from kdyno.understand.explain.records import Recorded, common_boots, family_of, has_records, read_recording, unit_of
from kdyno.understand.explain.svg import Caption, flame_graph

MOST = 5
"""The most benchmarks of a variant."""
ROWS = 5


@dataclass(frozen=True)
class BenchmarkReason:
    """One benchmark that differs, with its explanation. All texts contain names of kernels, and must be escaped."""

    row: VerdictRow
    explanation: Explanation | None = None
    totals: Sequence[rows.Row] = ()
    events: Sequence[rows.Row] = ()
    functions: Sequence[rows.Row] = ()
    inlining: Sequence[str] = ()
    svg: Markup | None = None
    problem: str = ""
    """The reason for a missing explanation; empty if there is one."""


def find_reasons(report: RunReport, artefacts: Artefacts) -> dict[str, list[BenchmarkReason]]:
    """Return by variant the reasons of the largest effects; empty for a run whose boots have no PMU records.

    A missing or damaged record is not an error: the report mentions it.
    """
    recorded_by_variant: dict[str, Recorded] = {}
    reasons: dict[str, list[BenchmarkReason]] = {}
    for variant in report.others:
        pair = common_boots(report.boots, report.run.baseline, variant)
        if pair and has_records(pair):
            verdicts = {row.name: row for row in rows_of(report, variant)}
            reasons[variant] = [
                _reason(report, comparison, verdicts[comparison.benchmark], pair, artefacts, recorded_by_variant)
                for comparison in largest(report, variant)
            ]
    return reasons


def largest(report: RunReport, variant: str) -> list[Comparison]:
    """Return the comparisons of a variant that were judged different, the largest effects first."""
    differing = [
        (-abs(math.log(comparison.estimate.ratio)), comparison.benchmark, comparison)
        for comparison in report.comparisons
        if comparison.variant == variant and comparison.estimate and comparison.verdict in DIFFERENT
    ]
    return [comparison for _, _, comparison in sorted(differing, key=lambda ranked: ranked[:2])[:MOST]]


def _reason(
    report: RunReport,
    comparison: Comparison,
    row: VerdictRow,
    pair: tuple[BootRecord, ...],
    artefacts: Artefacts,
    recorded_by_variant: dict[str, Recorded],
) -> BenchmarkReason:
    [benchmark] = (candidate for candidate in report.benchmarks if candidate.name == comparison.benchmark)
    try:
        for boot in pair:
            assert boot.pmu is not None
            if boot.variant not in recorded_by_variant:
                recorded_by_variant[boot.variant] = read_recording(boot, artefacts)
        baseline, variant = (recorded_by_variant[boot.variant].measured_region(benchmark) for boot in pair)
        boots = f"block {pair[0].block}, seed {pair[0].seed}"
        subject = ComparedSubject(benchmark.name, pair[0].variant, pair[1].variant, unit_of(benchmark), boots)
        explanation = explain(subject, baseline, variant, family_of(report.run, variant.record))
        stacks = baseline.region.stacks or variant.region.stacks
        svg = (
            Markup(flame_graph(align_regions(baseline, variant), Caption.of(explanation))) if stacks else None
        )  # escapes all names itself
    except KdynoError as error:
        return BenchmarkReason(row, problem=str(error))
    return BenchmarkReason(
        row,
        explanation,
        totals=rows.totals(explanation),
        events=rows.events(explanation, ROWS),
        functions=rows.functions(explanation, ROWS),
        inlining=[rows.sentence(inlining, explanation.unit) for inlining in explanation.inlining[:ROWS]],
        svg=svg,
    )
