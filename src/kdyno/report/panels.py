"""One panel of the HTML report for each benchmark: sentences, plots, tables. Plots are drawn when it is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from markupsafe import Markup

from kdyno.base.measurement import AnyBenchmark
from kdyno.base.text import clean
from kdyno.judge.stats.diagnostics.tables import Analysis
from kdyno.judge.verdicts.model import Report
from kdyno.judge.verdicts.rows import VerdictRow, largest
from kdyno.report.figures import boxes, order, power, residuals
from kdyno.report.figures.style import Figure, to_json
from kdyno.report.grids import Grid, grids, sentences

MOST_DRAWN = 60
"""Panels with plots; further benchmarks have tables only, or the page would be large."""
FEW = 3
"""Up to so many panels are all open."""


@dataclass(frozen=True)
class Plot:
    """A plot as JSON for a script element."""

    title: str
    figure: Markup

    @classmethod
    def from_figure(cls, title: str, figure: Figure) -> Self:
        return cls(title, Markup(to_json(figure)))


@dataclass(frozen=True)
class Panel:
    """The template's data for one benchmark."""

    anchor: str
    name: str
    about: str
    rows: Sequence[tuple[str, VerdictRow]]
    """Each variant and its row."""
    sentences: Sequence[str]
    plots: Sequence[Plot]
    grids: Sequence[Grid]
    opened: bool


def panels(report: Report, rows: Mapping[str, Sequence[VerdictRow]], flags: order.Flags) -> list[Panel]:
    """Return panels in the order of the report. `rows` are those of the tables, by variant.

    The one with the largest effect is open, or all if there are few.
    """
    described = {benchmark.name: benchmark for benchmark in report.benchmarks}
    values = boxes.group_values(report)
    by_name = {(variant, row.name): row for variant, own in rows.items() for row in own}
    first = next((own[0].name for own in map(largest, rows.values()) if own), None)
    return [
        Panel(
            anchor=anchor(number),
            name=clean(analysis.benchmark),
            about=clean(described[analysis.benchmark].description),
            rows=[
                (variant, by_name[variant, clean(analysis.benchmark)])
                for variant in report.others
                if (variant, clean(analysis.benchmark)) in by_name
            ],
            sentences=sentences(report, analysis.benchmark),
            plots=list(_plots(report, described[analysis.benchmark], analysis, values, flags))
            if number < MOST_DRAWN
            else [],
            grids=grids(report, analysis),
            opened=len(report.analyses) <= FEW or clean(analysis.benchmark) == first,
        )
        for number, analysis in enumerate(report.analyses)
    ]


def anchor(number: int) -> str:
    """Return the id of the panel of the benchmark with this number in the report."""
    return f"benchmark-{number}"


def _plots(
    report: Report, benchmark: AnyBenchmark, analysis: Analysis, values: boxes.Values, flags: order.Flags
) -> Iterator[Plot]:
    own = [value for name in report.variants for value in values.get((benchmark.name, name), [])]
    left = analysis.assumptions.residuals if analysis.assumptions else ()
    drawn: list[tuple[str, Figure | None]] = [
        ("values", boxes.boxes(report, benchmark, values) if own else None),
        ("order of measuring: drift", order.order(report, order.points(own), flags)),
        ("residuals against normal", residuals.quantile_plot(report, left)),
        ("residuals against fitted", residuals.against_fitted(report, left, benchmark.unit)),
        ("power", power.power(report, analysis.power)),
        ("detectable effect", power.detectable(report, analysis.power)),
    ]
    for title, figure in drawn:
        if figure is not None:
            yield Plot.from_figure(title, figure)
