"""Amounts and differences as short text."""

from __future__ import annotations

from kdyno.base.text import format_signed, number
from kdyno.understand.explain.model import Pair

SMALLEST = 5e-4


def amount(value: float) -> str:
    """Return an amount with four digits: `1,204`, `12.31`, `0.05`; less than a thousandth is 0."""
    if abs(value) < SMALLEST:
        return "0"
    return f"-{number(-value)}" if value < 0 else number(round(value, 3))


def change(value: float) -> str:
    """Return an amount with its sign: `+12.31`, `-0.05`, `0`."""
    return f"+{amount(value)}" if value >= SMALLEST else amount(value)


def relative(pair: Pair) -> str:
    """Return the difference in percent of the baseline: `-3.1 %`; `new` or `gone` if one of the amounts is 0."""
    if abs(pair.baseline) < SMALLEST:
        return "" if abs(pair.variant) < SMALLEST else "new"
    if abs(pair.variant) < SMALLEST:
        return "gone"
    return f"{format_signed(pair.difference / pair.baseline)} %"
