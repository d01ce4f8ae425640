"""The report as one HTML file: no network, no other files; every text from a guest or a file is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdyno.base.files import write_whole
from kdyno.base.text import clean, format_count
from kdyno.judge.verdicts.model import Report, RunReport
from kdyno.judge.verdicts.rows import VerdictRow, group_sentences, judged_of_variant, largest, scope_mark, table_rows
from kdyno.report import page, panels, view
from kdyno.report.figures import boxes, order, style
from kdyno.report.figures.forest import forest
from kdyno.report.figures.margin import against_margin
from kdyno.report.grids import CORRECTIONS
from kdyno.report.sections import shown_sections
from kdyno.report.sections.boots import disturbances
from kdyno.store.artefacts import Artefacts

BAR_WIDTH = 160
"""The width of the drawing of an effect in pixels, as the style has it."""
MOST_IN_PRINT = 16
"""Columns of variants that are readable on a printed page; more are printed as a table for each variant."""
FEW_SENTENCES = 8
"""Rows of a variant; the others are folded."""


@dataclass(frozen=True)
class Table:
    """The template's data for one variant."""

    variant: str
    rows: Sequence[VerdictRow]
    """The geometric mean last."""
    mark: str
    """The scope of all its verdicts, if it isn't kernels."""
    headline: VerdictRow | None
    """The geometric mean, or the only benchmark."""
    sentences: Sequence[str]
    """The rows with a difference, the largest effects first."""
    cautions: Sequence[str]
    forest: panels.Plot
    margin: panels.Plot | None


@dataclass(frozen=True)
class BarScale:
    """The scale of all drawings of effects."""

    low: str
    """The gain at the left end, in percent."""
    high: str
    band_left: float
    """The place of the band of equivalence, in the units of the drawing."""
    band_width: float
    zero: float


@dataclass(frozen=True)
class EffectBar:
    """An effect with its interval, as places on the scale of the page."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True)
class OverviewCell:
    """One variant's verdict on one benchmark."""

    row: VerdictRow
    gain: float | str
    """The gain as a logarithm, for sorting; empty if there is none."""
    factor: str
    """The effect as a factor: `1.02×`; empty if there is none."""
    details: str
    """The interval, and the smallest effect that could have been seen."""
    bar: EffectBar | None


@dataclass(frozen=True)
class OverviewLine:
    """One benchmark, or the mean of all, with all variants side by side."""

    name: str
    about: str
    baseline: str
    unit: str
    cells: Sequence[OverviewCell | None]
    """A cell for each variant; None if it has no such row."""
    is_mean: bool

    @property
    def is_alike(self) -> bool:
        """Return whether every variant is equivalent to the baseline."""
        return all(cell is not None and cell.row.verdict == "equivalent" for cell in self.cells)


def write_html(report: Report, path: Path, artefacts: Artefacts | None = None) -> None:
    """Write the report to a file, whole or not at all. Raise NotWritable and DiskFull."""
    write_whole(path, render(report, artefacts))


def render(report: Report, artefacts: Artefacts | None = None) -> str:
    """Return the report as a self-contained HTML page; PMU records among the artefacts make it say why."""
    template = page.environment().get_template("run.html.j2" if isinstance(report, RunReport) else "file.html.j2")
    return template.render(report=report, sections=shown_sections(report, artefacts), **_page_data(report))


def _page_data(report: Report) -> dict[str, Any]:
    """Return the data of every report's page."""
    by_variant = {variant: table_rows(report, variant) for variant in report.others}
    axis = view.axis([row.span for rows in by_variant.values() for row in rows if row.span], report.margin)
    tables = _tables(report, by_variant, axis)
    first_lines = view.first_lines(report)
    flags = disturbances(report)
    values = boxes.group_values(report)
    several = len({benchmark for benchmark, _ in values}) > 1
    drift = order.order(report, order.median_residuals(report), flags, legend=True) if several else None
    return {
        "first_lines": first_lines,
        "note_count": format_count(len(report.notices) + len(first_lines) - 1, "note"),
        "tables": tables,
        "overview": _overview(report, by_variant, axis),
        "crowded": len(tables) > MOST_IN_PRINT,
        "scale": _bar_scale(axis, report.margin),
        "panels": panels.panels(report, {table.variant: table.rows for table in tables}, flags),
        "anchors": {
            clean(analysis.benchmark): panels.anchor(number) for number, analysis in enumerate(report.analyses)
        },
        "boxes": panels.Plot.from_figure("", boxes.grid(report, values)) if several else None,
        "drift": panels.Plot.from_figure("", drift) if drift is not None else None,
        "correction": CORRECTIONS[report.correction],
        "colours": list(style.colours(report)),
        "hues": len(style.VARIANT_COLOURS),
        "verdicts": [name for name in style.COLOURS if name in _given(tables) or name in ("equivalent", "undecided")],
        "sides": view.sides(report),
        "scopes": view.SCOPES,
        "few_sentences": FEW_SENTENCES,
        "parts": page.parts(),
    }


def _overview(report: Report, by_variant: Mapping[str, Sequence[VerdictRow]], axis: view.Axis) -> list[OverviewLine]:
    """Return a line for each benchmark that has a row, and for the mean, in the order of the report."""
    described = {clean(benchmark.name): clean(benchmark.description) for benchmark in report.benchmarks}
    rows = {variant: {row.name: row for row in own} for variant, own in by_variant.items()}
    names = dict.fromkeys(row.name for own in by_variant.values() for row in own)
    lines = []
    for name in names:
        own = [rows[variant].get(name) for variant in by_variant]
        first = next(row for row in own if row is not None)
        about = "" if first.is_mean else described[name]
        cells = [_overview_cell(row, axis) if row else None for row in own]
        lines.append(OverviewLine(name, about, first.baseline, first.unit, cells, first.is_mean))
    return lines


def _bar_scale(axis: view.Axis, margin: float) -> BarScale:
    edge = math.log1p(margin)
    left, right = _place(-edge, axis), _place(edge, axis)
    return BarScale(
        low=view.percent_gain(axis.low),
        high=view.percent_gain(axis.high),
        band_left=left,
        band_width=round(right - left, 1),
        zero=_place(0.0, axis),
    )


def _overview_cell(row: VerdictRow, axis: view.Axis) -> OverviewCell:
    factor = f"{row.ratio:.3g}×" if row.ratio is not None else ""
    sees = f", sees {row.sensitivity}" if row.sensitivity else ""
    details = f"{row.interval}{sees}" if row.interval else ""
    if row.span is None:
        return OverviewCell(row, "", factor, details, None)
    bar = EffectBar(*(_place(gain, axis) for gain in (row.span.low, row.span.mid, row.span.high)))
    return OverviewCell(row, float(f"{row.span.mid:.5g}"), factor, details, bar)


def _place(gain: float, axis: view.Axis) -> float:
    """Return the place of a gain on the scale; a gain beyond the scale gets its end."""
    within = min(max(gain, axis.low), axis.high)
    return round(4 + (within - axis.low) / (axis.high - axis.low) * (BAR_WIDTH - 8), 1)


def _tables(report: Report, by_variant: Mapping[str, Sequence[VerdictRow]], axis: view.Axis) -> list[Table]:
    tables = []
    for variant, rows in by_variant.items():
        margin = against_margin(report, variant)
        tables.append(
            Table(
                variant=variant,
                rows=rows,
                mark=scope_mark(judged_of_variant(report, variant)),
                headline=rows[-1] if rows and (rows[-1].is_mean or len(rows) == 1) else None,
                sentences=[row.sentence for row in largest(rows)],
                cautions=[f"{names}: {caution}" for names, caution in group_sentences(rows, lambda row: row.caution)],
                forest=panels.Plot.from_figure("", forest(report, variant, axis)),
                margin=panels.Plot.from_figure("", margin) if margin is not None else None,
            )
        )
    return tables


def _given(tables: Sequence[Table]) -> set[str]:
    """Return the verdicts that were given."""
    return {row.verdict for table in tables for row in table.rows if not row.is_mean}
