"""Amounts and differences as short text."""

from __future__ import annotations

from kdyno.base.text import format_signed, number
from kdyno.understand.explain.model import Pair

SMALLEST = 5e-4


def amount(value: float) -> str:
    """Four digits: `1,204`, `12.31`, `0.05`; less than a thousandth is 0."""
    if abs(value) < SMALLEST:
        return "0"
    return f"-{number(-value)}" if value < 0 else number(round(value, 3))


def change(value: float) -> str:
    """The same with a sign: `+12.31`, `-0.05`, `0`."""
    return f"+{amount(value)}" if value >= SMALLEST else amount(value)


def relative(pair: Pair) -> str:
    """The difference in percent of the baseline's: `-3.1 %`; `new` and `gone` where one of them is nothing."""
    if abs(pair.baseline) < SMALLEST:
        return "" if abs(pair.variant) < SMALLEST else "new"
    if abs(pair.variant) < SMALLEST:
        return "gone"
    return f"{format_signed(pair.difference / pair.baseline)} %"
