"""Where a run's numbers come from, and the command that repeats it."""

from __future__ import annotations

from typing import Any

from kdyno.judge.verdicts.model import Report, RunReport
from kdyno.report.sections.base import ReportSection
from kdyno.store.artefacts import Artefacts


def _data(report: Report, _artefacts: Artefacts | None) -> dict[str, Any] | None:
    if not isinstance(report, RunReport):
        return None
    from kdyno.report import filters  # recipes take long to import: only a page needs them

    return {
        "recipes": {variant.name: filters.changed(variant) for variant in report.run.variants},
        "commands": {boot.variant: boot.command for boot in reversed(report.boots) if boot.command},
    }


SECTION = ReportSection("provenance", "benchmarks", _data)
