"""Scaling curves as one HTML file: no network, no other files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.files import write_whole
from kdyno.judge.curves.model import ScalingReport
from kdyno.report import page, panels
from kdyno.report import scaling_view as view
from kdyno.report.figures.scaling import curves


@dataclass(frozen=True)
class ShownSeries:
    """The template's data for one series."""

    name: str
    about: str
    rows: Sequence[Sequence[str]]
    sentences: Sequence[str]
    plot: panels.Plot


def write_html(report: ScalingReport, path: Path) -> None:
    """Write the page to a file, whole or not at all. Raise NotWritable and DiskFull."""
    write_whole(path, render(report))


def shown_of(report: ScalingReport) -> list[ShownSeries]:
    """Return the template's data for each series."""
    return [
        ShownSeries(
            name=view.name_of(series, report),
            about=f"{view.WORDS[series.work]}; throughput in {series.unit}",
            rows=view.rows(series),
            sentences=view.sentences(series),
            plot=panels.Plot.from_figure("", curves(series)),
        )
        for series in report.series
    ]


def render(report: ScalingReport) -> str:
    """Return the self-contained page."""
    return (
        page.environment()
        .get_template("scaling.html.j2")
        .render(
            report=report,
            shown=shown_of(report),
            columns=view.columns(report),
            taxes=[view.tax(tax, report) for tax in report.taxes],
            files=list(zip(report.files, report.sha256, strict=True)),
            parts=page.parts(),
        )
    )
