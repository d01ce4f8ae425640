"""The sections of a report, in the order of the page and of the terminal.

A new section is a file here, a template, and a row of SECTIONS.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdyno.judge.verdicts.model import Report
from kdyno.report.sections import boots, budget, confirmation, failed_boots, files, provenance, scaling, selftest, why
from kdyno.report.sections.base import Line, ReportSection, ShownSection
from kdyno.store.artefacts import Artefacts

SECTIONS: tuple[ReportSection, ...] = (
    confirmation.SECTION,
    scaling.SECTION,
    why.SECTION,
    budget.SECTION,
    failed_boots.SECTION,
    selftest.SECTION,
    provenance.SECTION,
    boots.SECTION,
    files.SECTION,
)


def shown_sections(report: Report, artefacts: Artefacts | None) -> list[ShownSection]:
    """Return the sections of a page that have something to show."""
    by_section = ((section, section.data(report, artefacts)) for section in SECTIONS)
    return [ShownSection(section.place, section.template, data) for section, data in by_section if data is not None]


def section_lines(report: Report) -> Iterator[Line]:
    """Return the lines of all sections for a terminal, with an empty line before each section."""
    for section in SECTIONS:
        lines = list(section.lines(report))
        if lines:
            yield "", ""
            yield from lines
