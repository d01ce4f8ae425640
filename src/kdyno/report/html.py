"""The report as one HTML file: no network, no other files; every text from a guest or a file is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdyno.base.files import write_whole
from kdyno.base.text import clean
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


def write_html(report: Report, path: Path, artefacts: Artefacts | None = None) -> None:
    """Write the report to a file, whole or not at all. Raise NotWritable and DiskFull."""
    write_whole(path, render(report, artefacts))


def render(report: Report, artefacts: Artefacts | None = None) -> str:
    """Return the report as a self-contained HTML page; PMU records among the artefacts make it say why."""
    template = page.environment().get_template("run.html.j2" if isinstance(report, RunReport) else "file.html.j2")
    return template.render(report=report, sections=shown_sections(report, artefacts), **_page_data(report))


def _page_data(report: Report) -> dict[str, Any]:
    """Return the data of every report's page."""
    tables = _tables(report)
    flags = disturbances(report)
    values = boxes.group_values(report)
    several = len({benchmark for benchmark, _ in values}) > 1
    drift = order.order(report, order.median_residuals(report), flags, legend=True) if several else None
    return {
        "first_lines": view.first_lines(report),
        "tables": tables,
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


def _tables(report: Report) -> list[Table]:
    by_variant = {variant: table_rows(report, variant) for variant in report.others}
    spans = [row.span for rows in by_variant.values() for row in rows if row.span]
    axis = view.axis(spans, report.margin)
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
