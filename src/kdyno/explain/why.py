"""Why the variants of a run differ: the part of the HTML report that PMU records make possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kdyno.errors import KdynoError
from kdyno.explain import rows
from kdyno.explain.align import aligned
from kdyno.explain.compare import Subject, explain
from kdyno.explain.model import Explanation
from kdyno.explain.records import Recorded, common_boots, family_of, has_records, of_boot, unit_of
from kdyno.explain.svg import Caption, flame_graph
from kdyno.judge.compare import Comparison
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import BootRecord
from kdyno.verdicts.model import RunReport
from kdyno.verdicts.rows import Row, rows_of

MOST = 5
"""Benchmarks of a variant."""
ROWS = 5


@dataclass(frozen=True)
class Reason:
    """One benchmark that differs, and why; all texts are from names in kernels and must be escaped."""

    row: Row
    said: Explanation | None = None
    totals: Sequence[rows.Row] = ()
    events: Sequence[rows.Row] = ()
    functions: Sequence[rows.Row] = ()
    inlining: Sequence[str] = ()
    svg: Markup | None = None
    problem: str = ""
    """Why there is no explanation."""


def why(report: RunReport, artefacts: Artefacts) -> dict[str, list[Reason]]:
    """By variant, the reasons behind the largest effects; empty for a run whose boots carry no PMU records.

    A record that is missing or damaged is no error: the report says so.
    """
    read: dict[str, Recorded] = {}
    found: dict[str, list[Reason]] = {}
    for variant in report.others:
        pair = common_boots(report.boots, report.run.baseline, variant)
        if pair and has_records(pair):
            verdicts = {row.name: row for row in rows_of(report, variant)}
            found[variant] = [
                _reason(report, each, verdicts[each.benchmark], pair, artefacts, read)
                for each in largest(report, variant)
            ]
    return found


def largest(report: RunReport, variant: str) -> list[Comparison]:
    """The comparisons of a variant that were judged faster or slower, the largest effects first."""
    differing = [
        (-abs(math.log(each.estimate.ratio)), each.benchmark, each)
        for each in report.comparisons
        if each.variant == variant and each.estimate and each.verdict in ("faster", "slower")
    ]
    return [each for _, _, each in sorted(differing, key=lambda known: known[:2])[:MOST]]


def _reason(
    report: RunReport,
    comparison: Comparison,
    row: Row,
    pair: tuple[BootRecord, BootRecord],
    artefacts: Artefacts,
    read: dict[str, Recorded],
) -> Reason:
    [benchmark] = (each for each in report.benchmarks if each.name == comparison.benchmark)
    try:
        for boot in pair:
            assert boot.pmu is not None
            if boot.variant not in read:
                read[boot.variant] = of_boot(boot, artefacts)
        one, two = (read[boot.variant].measured(benchmark) for boot in pair)
        boots = f"block {pair[0].block}, seed {pair[0].seed}"
        subject = Subject(benchmark.name, pair[0].variant, pair[1].variant, unit_of(benchmark), boots)
        said = explain(subject, one, two, family_of(report.run, two.record))
        stacks = one.region.stacks or two.region.stacks
        svg = Markup(flame_graph(aligned(one, two), Caption.of(said))) if stacks else None  # escapes all names itself
    except KdynoError as error:
        return Reason(row, problem=str(error))
    return Reason(
        row,
        said,
        totals=rows.totals(said),
        events=rows.events(said, ROWS),
        functions=rows.functions(said, ROWS),
        inlining=[rows.sentence(each, said.unit) for each in said.inlining[:ROWS]],
        svg=svg,
    )
