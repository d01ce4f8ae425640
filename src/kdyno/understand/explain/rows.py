"""The rows of an explanation's tables, as short text: the same in the terminal and in the report."""

from __future__ import annotations

import re

from kdyno.understand.explain.figures import SMALLEST, amount, change, relative
from kdyno.understand.explain.model import Explanation, FunctionChange, Inlining, Pair

Row = tuple[str, ...]
HASH = re.compile(r"\.llvm\.\d+")
"""ThinLTO's mark of what was a static function; its number says nothing to anybody."""


def totals(explanation: Explanation) -> list[Row]:
    """What, baseline, variant, difference, the same in percent."""
    return [
        (name, *_three(pair), relative(pair))
        for name, pair in (
            ("kernel instructions", explanation.instructions),
            ("cycles, modelled", explanation.cycles),
            ("apart: interrupt instructions", explanation.interrupt_instructions),
            ("apart: interrupt cycles, modelled", explanation.interrupt_cycles),
        )
    ]


def events(explanation: Explanation, count: int) -> list[Row]:
    """Event, baseline, variant, difference, its part in the difference of modelled cycles."""
    differing = [event for event in explanation.events if _differs(event.amount.difference, event.cycles)]
    return [(event.event, *_three(event.amount), change(event.cycles)) for event in differing[:count]]


def functions(explanation: Explanation, count: int) -> list[Row]:
    """Function and its clones, instructions in baseline and variant, difference, modelled cycles, bytes of code."""
    differing = [
        function
        for function in explanation.functions
        if _differs(function.instructions.difference, function.cycles.difference)
    ]
    return [
        (
            _named(function),
            *_three(function.instructions),
            change(function.cycles.difference),
            f"{function.size.baseline:,.0f} → {function.size.variant:,.0f}",
        )
        for function in differing[:count]
    ]


def footprint(explanation: Explanation) -> list[Row]:
    """What, baseline, variant, difference; counts, not per unit of work."""
    return [
        (name, f"{pair.baseline:,.0f}", f"{pair.variant:,.0f}", f"{pair.difference:+,.0f}" if pair.difference else "0")
        for name, pair in (
            ("functions", explanation.footprint.functions),
            ("their size, bytes", explanation.footprint.code_bytes),
            ("cache lines (64 bytes)", explanation.footprint.lines),
            ("hot cache lines (99 % of instructions)", explanation.footprint.hot_lines),
            ("pages (4 kB)", explanation.footprint.pages),
        )
    ]


def sentence(inlining: Inlining, unit: str) -> str:
    """`fput is inlined into ksys_read (12 calls/op gone)`; `seems` where no line table says so."""
    proof = {None: "", True: ", by the line tables", False: ", not in the line tables"}[inlining.confirmed]
    verb = "is" if inlining.confirmed else "seems"
    how, what = ("inlined", "gone") if inlining.appeared else ("no longer inlined", "came")
    return (
        f"{inlining.callee} {verb} {how} into {inlining.caller} ({amount(inlining.calls)} calls/{unit} {what}{proof})"
    )


def _named(function: FunctionChange) -> str:
    """`do_read (.isra.0)`: a function that isn't only called what it is called in the source."""
    suffixes = {HASH.sub(".llvm", name).removeprefix(function.function) for name in function.clones} - {""}
    return f"{function.function} ({', '.join(sorted(suffixes))})" if suffixes else function.function


def _three(pair: Pair) -> Row:
    return amount(pair.baseline), amount(pair.variant), change(pair.difference)


def _differs(*differences: float) -> bool:
    return any(abs(difference) >= SMALLEST for difference in differences)
