from __future__ import annotations

import pytest

from kdyno.base.text import p_value
from kdyno.judge.stats.verdict import Verdict
from kdyno.judge.verdicts.rows import MEAN, Span, VerdictRow, largest


def row(name: str, verdict: Verdict, gain: float) -> VerdictRow:
    span = Span(gain - 0.01, gain, gain + 0.01)
    return VerdictRow(
        name, "ns", "", "", "", "", "", verdict, "images", verdict, "", "", name, span, 0.01, "12", 0, name == MEAN
    )


@pytest.mark.parametrize(
    ("p", "shown"),
    [(None, ""), (0.0, "< 0.0001"), (0.00009, "< 0.0001"), (0.00049, "0.0005"), (0.0321, "0.032"), (0.8999947, "0.90")],
)
def test_p_values_are_told_apart_down_to_one_in_ten_thousand(p: float | None, shown: str) -> None:
    assert p_value(p) == shown


def test_what_differs_comes_largest_first_and_without_the_geometric_mean() -> None:
    rows = [
        row("small", "faster", 0.02),
        row("large", "slower", -0.2),
        row("same", "equivalent", 0.001),
        row("unknown", "undecided", 0.5),
        row(MEAN, "faster", 0.3),
    ]
    assert [row.name for row in largest(rows)] == ["large", "small"]
