"""The boots that took longest."""

from __future__ import annotations

from kdyno.judge.verdicts.model import Report, RunReport
from kdyno.report.sections.base import Section
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import BootRecord


def _data(report: Report, _artefacts: Artefacts | None) -> list[BootRecord] | None:
    if not isinstance(report, RunReport):
        return None
    return sorted(report.boots, key=lambda boot: boot.seconds, reverse=True)[:5] or None


SECTION = Section("slowest", "benchmarks", _data)
