"""The result of a benchmark as a test of a continuous integration has one: passed, failed, skipped. Pure."""

from __future__ import annotations

from typing import Literal

from kdyno.judge.stats.compare import Comparison
from kdyno.judge.stats.verdict import WORSE
from kdyno.judge.verdicts.model import RunReport

CaseResult = Literal["passed", "failed", "undecided", "not-measured", "unbootable"]
"""`failed`: worse, and not within the margin, as `--fail-on-regression` has it. `undecided`: the data show neither.
`not-measured`: there are no values to compare. `unbootable`: the variant boots never.
"""


def unbootable_variants(report: RunReport) -> frozenset[str]:
    """Return the variants whose boots failed, without one that succeeded."""
    failed, ok = ({boot.variant for boot in report.boots if boot.status == status} for status in ("failed", "ok"))
    return frozenset(failed - ok)


def case_result(comparison: Comparison, unbootable: frozenset[str]) -> CaseResult:
    """Return what became of one benchmark of one variant."""
    if comparison.verdict is None:
        return "unbootable" if comparison.variant in unbootable else "not-measured"
    if comparison.verdict == "undecided":
        return "undecided"
    return "failed" if comparison.verdict in WORSE else "passed"


def case_sentence(comparison: Comparison) -> str:
    """Return the verdict in one sentence, or why there is none."""
    return comparison.sentence or comparison.reason or "not compared"
