"""Where the numbers of a file come from."""

from __future__ import annotations

from kdyno.judge.verdicts.model import FileReport, Report
from kdyno.report.sections.base import ReportSection
from kdyno.store.artefacts import Artefacts


def _data(report: Report, _artefacts: Artefacts | None) -> list[tuple[str, str]] | None:
    """Return each file with its SHA-256."""
    return list(zip(report.files, report.sha256, strict=True)) if isinstance(report, FileReport) else None


SECTION = ReportSection("files", "benchmarks", _data)
