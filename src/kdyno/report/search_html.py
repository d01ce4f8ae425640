"""A search in a space of recipes as one HTML file: no network, no other files."""

from __future__ import annotations

from pathlib import Path

from kdyno.base.files import write_whole
from kdyno.report import page, panels
from kdyno.report.figures.search import importance, losses, pareto
from kdyno.tune.space.model import SearchResult
from kdyno.tune.space.show import KNOB_COLUMNS, RECIPE_COLUMNS, confirmations, knob_cells, recipe_cells, summary


def write_html(result: SearchResult, path: Path) -> None:
    """Write the page to a file, whole or not at all. Raise NotWritable and DiskFull."""
    write_whole(path, render(result))


def render(result: SearchResult) -> str:
    """Return the self-contained page."""
    front, loss = pareto(result), losses(result.knobs)
    return (
        page.environment()
        .get_template("search.html.j2")
        .render(
            result=result,
            summary=summary(result),
            confirmations=list(confirmations(result)),
            front=panels.Plot.from_figure("", front) if front is not None else None,
            importance=panels.Plot.from_figure("", importance(result.knobs)) if result.knobs else None,
            losses=panels.Plot.from_figure("", loss) if loss is not None else None,
            recipe_columns=RECIPE_COLUMNS,
            recipes=[recipe_cells(recipe) for recipe in result.recipes],
            knob_columns=KNOB_COLUMNS,
            knobs=[knob_cells(knob) for knob in result.knobs],
            parts=page.parts(),
        )
    )
