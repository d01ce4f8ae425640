"""The result of a variant in one line: how many benchmarks are better, worse and equivalent, and the mean. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kdyno.base.text import clean
from kdyno.judge.stats.verdict import BETTER, DIFFERENT, WORSE, Verdict
from kdyno.judge.verdicts.model import Report
from kdyno.judge.verdicts.rows import VerdictRow, judged_of_variant, scope_mark, table_rows

NOT_COMPARED = "not compared"
CLEAR: dict[Verdict, Verdict] = {"fewer": "better", "more": "worse"}
"""The words for counts that read wrongly after a number: `1 more, 32 equivalent`."""


def summary_lines(report: Report) -> list[str]:
    """Return a line for each variant that is compared with the baseline."""
    return [summary_line(report, variant, table_rows(report, variant)) for variant in report.others]


def summary_line(report: Report, variant: str, rows: Sequence[VerdictRow]) -> str:
    """Return `gcc-O3: 31 faster, 2 slower, 52 undecided; mean +2.7 %, faster`. `rows` are those of the table."""
    name = f"{clean(variant)}{scope_mark(judged_of_variant(report, variant))}"
    benchmarks = [row for row in rows if not row.is_mean]
    means = [_mean(row) for row in rows if row.is_mean and row.effect]
    if len(benchmarks) == 1:
        return f"{name}: {_only(benchmarks[0])}"
    return f"{name}: {'; '.join([_counts(benchmarks), *means])}"


def _counts(rows: Sequence[VerdictRow]) -> str:
    """Return how many rows have each verdict: the better ones first, then the worse ones, those without one last."""
    by_rank = sorted(rows, key=lambda row: _rank(row.verdict))
    counts = Counter(_word(row) for row in by_rank)
    return ", ".join(f"{number:,} {verdict}" for verdict, number in counts.items()) or "nothing was compared"


def _rank(verdict: Verdict | str) -> int:
    groups = (BETTER, WORSE, DIFFERENT, {"equivalent"}, {"undecided"})
    return next((rank for rank, group in enumerate(groups) if verdict in group), len(groups))


def _word(row: VerdictRow) -> str:
    """Return the verdict as it follows a number."""
    if not row.verdict:
        return NOT_COMPARED
    return row.verdict_shown.replace(row.verdict, CLEAR.get(row.verdict, row.verdict), 1)


def _mean(row: VerdictRow) -> str:
    unit = "" if row.unit == "speed" else f"{row.unit} "
    return f"mean {unit}{row.effect}, {row.verdict_shown or 'not judged'}"


def _only(row: VerdictRow) -> str:
    effect = f"{row.effect}, " if row.effect else ""
    return f"{row.name} {effect}{row.verdict_shown or NOT_COMPARED}"
