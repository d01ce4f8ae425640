"""Why variants differ, from the PMU records of a run's boots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdyno.judge.verdicts.model import Report, RunReport
from kdyno.report.sections.base import ReportSection
from kdyno.store.artefacts import Artefacts

if TYPE_CHECKING:
    from kdyno.understand.explain.why import BenchmarkReason


def _data(report: Report, artefacts: Artefacts | None) -> dict[str, list[BenchmarkReason]] | None:
    """Return the reasons by variant. Only runs with PMU records pay for the import."""
    if artefacts is None or not isinstance(report, RunReport) or not any(boot.pmu for boot in report.boots):
        return None
    from kdyno.understand.explain.why import find_reasons

    return find_reasons(report, artefacts) or None


SECTION = ReportSection("why", "values", _data)
