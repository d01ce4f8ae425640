"""All boots of a run, and what disturbed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdyno.judge.verdicts.model import Report, RunReport
from kdyno.report.sections.base import ReportSection
from kdyno.store.artefacts import Artefacts

if TYPE_CHECKING:
    from kdyno.report.figures.order import Flags


def disturbances(report: Report) -> Flags:
    """Return what disturbed each boot, in one text, by variant and block."""
    sentences: dict[tuple[str, int | None], str] = {}
    for flag in report.flags if isinstance(report, RunReport) else ():
        before = sentences.get((flag.variant, flag.block))
        sentences[flag.variant, flag.block] = f"{before}; {flag.sentence}" if before else flag.sentence
    return sentences


def _data(report: Report, _artefacts: Artefacts | None) -> Flags | None:
    return disturbances(report) if isinstance(report, RunReport) else None


SECTION = ReportSection("boots", "benchmarks", _data)
