"""The formats of this room that cross a process boundary, by the names that `kdyno schema` has for them."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "compare": Format("kdyno.judge.verdicts.model:RunReports", "`kdyno compare --json`"),
    "history": Format("kdyno.judge.history.model:HistoryReport", "`kdyno history --json`"),
    "judge": Format("kdyno.judge.verdicts.model:FileReport", "`kdyno judge --json`"),
    "report": Format(
        "kdyno.judge.verdicts.model:RunReport", "`kdyno report --json`, `kdyno run --json` and `kdyno ab --json`"
    ),
    "scaling": Format("kdyno.judge.curves.model:ScalingReport", "`kdyno scaling --json`"),
    "selftest": Format("kdyno.judge.verdicts.selftest:SelfTestList", "`kdyno selftest --json`"),
}
