"""How often this host calls equal kernels different."""

from __future__ import annotations

from kdyno.judge.verdicts.model import Report, RunReport
from kdyno.report.sections.base import ReportSection
from kdyno.store.artefacts import Artefacts


def _data(report: Report, _artefacts: Artefacts | None) -> RunReport | None:
    return report if isinstance(report, RunReport) and (report.selftest or report.link_order) else None


SECTION = ReportSection("selftest", "benchmarks", _data)
