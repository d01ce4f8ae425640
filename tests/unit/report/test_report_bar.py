from __future__ import annotations

import pytest

from kdyno.base.text import number
from kdyno.judge.verdicts.rows import Span
from kdyno.report.bar import bar, heading
from kdyno.report.view import Axis, SideNames, axis

EVEN = Axis(-0.05, 0.05)


@pytest.mark.parametrize(
    ("span", "drawn"),
    [
        (Span(0.02, 0.03, 0.04), "        · │ · ├─●─┤  "),
        (Span(-0.04, -0.03, -0.02), "  ├─●─┤ · │ ·        "),
        (Span(-0.01, 0.0, 0.01), "        ├─●─┤        "),
        (Span(-0.02, 0.01, 0.04), "      ├───┼─●─────┤  "),
        (Span(0.03, 0.03, 0.03), "        · │ ·   ●    "),
        (Span(-0.2, 0.01, 0.3), "‹─────────┼─●───────›"),
        (None, "        · │ ·        "),
    ],
)
def test_an_interval_is_drawn_along_the_common_axis(span: Span | None, drawn: str) -> None:
    assert bar(span, EVEN, 0.01, 21) == drawn


def test_the_heading_says_which_side_is_better_where_there_is_room() -> None:
    assert heading(EVEN, SideNames("slower", "faster"), 21) == "    slower│faster    "
    assert heading(Axis(-0.01, 0.09), SideNames("slower", "faster"), 11) == " │faster   "


def test_an_axis_shows_every_effect_but_is_not_ruled_by_one_wild_interval() -> None:
    spans = [Span(0.01, 0.02, 0.03)] * 20 + [Span(-5, 0.04, 5)]
    limits = axis(spans, 0.01)
    assert 0.04 < limits.high < 0.1
    assert limits.low == -0.015


@pytest.mark.parametrize("margin", [0.0, 0.01])
def test_there_is_an_axis_even_without_an_interval(margin: float) -> None:
    limits = axis([], margin)
    assert limits.low < 0 < limits.high


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.01234, "0.01234"),
        (19.84, "19.84"),
        (999.96, "1000"),
        (12345.6, "12,346"),
        (123456, "123.5k"),
        (2.5e9, "2.5G"),
        (4e13, "40,000G"),
    ],
)
def test_values_are_shown_with_four_digits(value: float, shown: str) -> None:
    assert number(value) == shown
