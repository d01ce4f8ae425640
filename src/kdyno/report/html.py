"""The report as one HTML file: no network, no other files; whatever a guest said is escaped."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from kdyno.judge.verdict import limit
from kdyno.kernel.recipe import Recipe
from kdyno.report import figures, view
from kdyno.report.clean import clean, clean_lines
from kdyno.report.files import write_atomically
from kdyno.report.model import RunReport
from kdyno.store.artefacts import Artefacts

if TYPE_CHECKING:
    from kdyno.report.why import Reason


@dataclass(frozen=True)
class Table:
    """What the template shows of one variant."""

    variant: str
    rows: list[view.Row]
    mean: view.Row


def write_html(report: RunReport, path: Path, artefacts: Artefacts | None = None) -> None:
    """Write the report to a file, whole or not at all. Raises NotWritable and DiskFull."""
    write_atomically(path, render(report, artefacts))


def render(report: RunReport, artefacts: Artefacts | None = None) -> str:
    """Return the report as a self-contained HTML page; PMU records among the artefacts make it say why."""
    environment = Environment(
        loader=PackageLoader("kdyno.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters |= {"limit": limit, "moment": _moment, "bytes": _bytes, "command": _command}
    tables = [Table(variant, view.rows(report, variant), view.mean_row(report, variant)) for variant in report.others]
    spans = [row.span for table in tables for row in (*table.rows, table.mean) if row.span]
    axis = view.axis(spans, report.run.margin)
    return environment.get_template("report.html.j2").render(
        report=report,
        run=report.run,
        lane=view.lane_line(report),
        tables=tables,
        verdicts=list(figures.COLOURS),
        forests={
            variant: Markup(figures.to_div(figures.forest(report, variant, axis), f"forest-{number}"))
            for number, variant in enumerate(report.others)
        },
        reasons=_reasons(report, artefacts) if artefacts else {},
        boxes=Markup(figures.to_div(figures.boxes(report), "boxes")) if report.values else "",
        recipes={variant.name: _changed(variant.recipe) for variant in report.run.variants},
        commands={boot.variant: boot.command for boot in reversed(report.boots) if boot.command},
        plotly=Markup(get_plotlyjs()),
    )


def _reasons(report: RunReport, artefacts: Artefacts) -> dict[str, list[Reason]]:
    """Why variants differ; only runs with PMU records pay for the import."""
    if not any(boot.pmu for boot in report.boots):
        return {}
    from kdyno.report.why import why

    return why(report, artefacts)


def _finalize(value: Any) -> Any:
    """Clean every text on its way into the page; what is marked as HTML or is a number stays as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean_lines(value)
    return value


def _changed(recipe: Recipe) -> dict[str, str]:
    """The knobs of a recipe that were turned, as text."""
    knobs = recipe.model_dump(mode="json", exclude_defaults=True)
    return {"toolchain": recipe.toolchain} | {name: _knob(value) for name, value in knobs.items()}


def _knob(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={_knob(each)}" for name, each in value.items())
    if isinstance(value, list):
        return " ".join(str(each) for each in value)
    return {True: "y", False: "n"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _moment(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _command(words: tuple[str, ...]) -> str:
    return clean(shlex.join(words))
