"""The rows of an explanation's tables as short text, for the terminal and for the report."""

from __future__ import annotations

import re

from kdyno.understand.explain.figures import SMALLEST, amount, change, relative
from kdyno.understand.explain.model import Explanation, FunctionChange, Inlining, Pair

Row = tuple[str, ...]
HASH = re.compile(r"\.llvm\.\d+")
"""The suffix of ThinLTO for static functions, whose number has no meaning for users."""


def totals(explanation: Explanation) -> list[Row]:
    """Return rows of name, baseline, variant, difference, and difference in percent."""
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
    """Return rows of event, baseline, variant, difference, and its part of the difference in modelled cycles."""
    differing = [event for event in explanation.events if _differs(event.amount.difference, event.cycles)]
    return [(event.event, *_three(event.amount), change(event.cycles)) for event in differing[:count]]


def functions(explanation: Explanation, count: int) -> list[Row]:
    """Return rows of function, instructions in baseline and variant, difference, modelled cycles, bytes of code."""
    differing = [
        function
        for function in explanation.functions
        if _differs(function.instructions.difference, function.cycles.difference)
    ]
    return [
        (
            _name_with_clones(function),
            *_three(function.instructions),
            change(function.cycles.difference),
            f"{function.size.baseline:,.0f} → {function.size.variant:,.0f}",
        )
        for function in differing[:count]
    ]


def footprint(explanation: Explanation) -> list[Row]:
    """Return rows of name, baseline, variant, difference. Counts are not per unit of work."""
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
    """Return `fput is inlined into ksys_read (12 calls/op gone)`; with `seems` if no line table confirms it."""
    proof = {None: "", True: ", by the line tables", False: ", not in the line tables"}[inlining.confirmed]
    verb = "is" if inlining.confirmed else "seems"
    relation, calls_change = ("inlined", "gone") if inlining.appeared else ("no longer inlined", "came")
    calls = f"{amount(inlining.calls)} calls/{unit} {calls_change}"
    return f"{inlining.callee} {verb} {relation} into {inlining.caller} ({calls}{proof})"


def _name_with_clones(function: FunctionChange) -> str:
    """Return the name of a function with the suffixes of its clones: `do_read (.isra.0)`."""
    suffixes = {HASH.sub(".llvm", name).removeprefix(function.function) for name in function.clones} - {""}
    return f"{function.function} ({', '.join(sorted(suffixes))})" if suffixes else function.function


def _three(pair: Pair) -> Row:
    return amount(pair.baseline), amount(pair.variant), change(pair.difference)


def _differs(*differences: float) -> bool:
    return any(abs(difference) >= SMALLEST for difference in differences)
