"""How throughput grows with the number of processes, where the names of benchmarks or variants say it."""

from __future__ import annotations

from typing import Any

from kdyno.judge.verdicts.model import Report, RunReport
from kdyno.report.sections.base import ReportSection
from kdyno.store.artefacts import Artefacts


def _data(report: Report, _artefacts: Artefacts | None) -> dict[str, Any] | None:
    if not isinstance(report, RunReport):
        return None
    from kdyno.judge.curves.of_run import curves_of  # scipy and plotly take long to import: only a page needs them
    from kdyno.report import scaling_view
    from kdyno.report.scaling_html import shown_of

    scaling = curves_of(report)
    if scaling is None:
        return None
    return {
        "shown": shown_of(scaling),
        "columns": scaling_view.columns(scaling),
        "taxes": [scaling_view.tax(tax, scaling) for tax in scaling.taxes],
        "notices": [notice for notice in scaling.notices if notice not in report.notices],
    }


SECTION = ReportSection("scaling", "verdicts", _data)
