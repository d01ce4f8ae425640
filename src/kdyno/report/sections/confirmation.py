"""What this host's processor makes of the gains of a run."""

from __future__ import annotations

from collections.abc import Iterator

from kdyno.base.text import clean
from kdyno.judge.verdicts.model import Confirmation, Report, RunReport
from kdyno.report.sections.base import Line, ReportSection
from kdyno.store.artefacts import Artefacts


def _data(report: Report, _artefacts: Artefacts | None) -> Confirmation | None:
    return report.confirmation if isinstance(report, RunReport) else None


def _lines(report: Report) -> Iterator[Line]:
    confirmation = report.confirmation if isinstance(report, RunReport) else None
    if confirmation is None:
        return
    run = f" ({clean(confirmation.cpu or '')}), run {confirmation.run[:12]}" if confirmation.run else ""
    yield f"on this processor{run}", "bold"
    for variant in confirmation.variants:
        yield f"{clean(variant.variant)}: {clean(variant.sentence)}", ""
    for name, reason in confirmation.left_out.items():
        yield f"{clean(name)} can't be had there: {clean(reason)}", "yellow"
    for notice in confirmation.notices:
        yield f"note: {clean(notice)}", "dim"


SECTION = ReportSection("confirmation", "verdicts", _data, _lines)
