"""Boots that failed or were lost: their reasons, and on the page the ends of their consoles."""

from __future__ import annotations

from collections.abc import Iterator

from kdyno.base.text import clean
from kdyno.judge.verdicts.model import ConsoleText, Report, RunReport
from kdyno.report.sections.base import Line, ReportSection
from kdyno.store.artefacts import Artefacts

STYLES = {"failed": "red", "lost": "yellow"}


def _data(report: Report, _artefacts: Artefacts | None) -> tuple[ConsoleText, ...] | None:
    return (report.consoles or None) if isinstance(report, RunReport) else None


def _lines(report: Report) -> Iterator[Line]:
    first = True
    shown = [boot for boot in report.boots if not boot.was_run_again] if isinstance(report, RunReport) else []
    for status, style in STYLES.items():
        boots = [boot for boot in shown if boot.status == status]
        if boots and not first:
            yield "", ""
        if boots:
            yield f"{status} boots:", "bold"
            first = False
        for boot in boots:
            yield f"  block {boot.block} {clean(boot.variant)}: {clean(boot.reason)}", style


SECTION = ReportSection("failed_boots", "benchmarks", _data, _lines)
