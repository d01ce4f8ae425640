"""Where the modelled cycles go, as bars and as a table."""

from __future__ import annotations

from typing import Any

from kdyno.judge.verdicts.model import Report, RunReport
from kdyno.report.sections.base import ReportSection
from kdyno.store.artefacts import Artefacts


def _data(report: Report, _artefacts: Artefacts | None) -> dict[str, Any] | None:
    if not isinstance(report, RunReport) or not report.budgets:
        return None
    from kdyno.report import panels  # plotly takes long to import: only a page needs it
    from kdyno.report.figures.budget import bars
    from kdyno.understand.explain import budget_rows

    budgets = report.budgets
    return {
        "of": budgets,
        "plots": [panels.Plot.from_figure("", drawn) for drawn in bars(budgets.budgets)] if budgets.budgets else [],
        "columns": budget_rows.COLUMNS,
        "rows": budget_rows.lines(budgets.budgets),
        "legend": budget_rows.LEGEND,
    }


SECTION = ReportSection("budget", "values", _data)
