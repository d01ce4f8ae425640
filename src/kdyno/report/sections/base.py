"""What a section of a report is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from kdyno.judge.verdicts.model import Report
from kdyno.store.artefacts import Artefacts

Place = Literal["verdicts", "values", "benchmarks"]
"""The part of the page that a section follows: the verdicts and their plots, all values, the panels of benchmarks."""
Line = tuple[str, str]
"""A line on the terminal: a text, which may hold anything, and its style."""


def _no_lines(_report: Report) -> Iterable[Line]:
    return ()


@dataclass(frozen=True)
class ReportSection:
    """A part of a report that stands on its own. It is left out where it has nothing to show."""

    name: str
    """The template that shows it is `templates/sections/NAME.html.j2`. There `section` is the data, `report` the
    report."""
    place: Place
    data: Callable[[Report, Artefacts | None], Any]
    """Return what the template shows; None if the page has no such section."""
    lines: Callable[[Report], Iterable[Line]] = _no_lines
    """Return what the terminal shows; nothing if it has no such section."""

    @property
    def template(self) -> str:
        return f"sections/{self.name}.html.j2"


@dataclass(frozen=True)
class ShownSection:
    """A section with its data, as the template of the page takes it."""

    place: Place
    template: str
    data: Any
