"""The rows of an explanation's tables, as short text: the same in the terminal and in the report."""

from __future__ import annotations

import re

from kdyno.explain.figures import SMALLEST, amount, change, relative
from kdyno.explain.model import Explanation, FunctionChange, Inlining, Pair

Row = tuple[str, ...]
HASH = re.compile(r"\.llvm\.\d+")
"""ThinLTO's mark of what was a static function; its number says nothing to anybody."""


def totals(said: Explanation) -> list[Row]:
    """What, baseline, variant, difference, the same in percent."""
    return [
        (name, *_three(pair), relative(pair))
        for name, pair in (
            ("kernel instructions", said.instructions),
            ("cycles, modelled", said.cycles),
            ("apart: interrupt instructions", said.interrupt_instructions),
            ("apart: interrupt cycles, modelled", said.interrupt_cycles),
        )
    ]


def events(said: Explanation, count: int) -> list[Row]:
    """Event, baseline, variant, difference, its part in the difference of modelled cycles."""
    differing = [each for each in said.events if _differs(each.amount.difference, each.cycles)]
    return [(each.event, *_three(each.amount), change(each.cycles)) for each in differing[:count]]


def functions(said: Explanation, count: int) -> list[Row]:
    """Function and its clones, instructions in baseline and variant, difference, modelled cycles, bytes of code."""
    differing = [each for each in said.functions if _differs(each.instructions.difference, each.cycles.difference)]
    return [
        (
            _named(each),
            *_three(each.instructions),
            change(each.cycles.difference),
            f"{each.size.baseline:,.0f} → {each.size.variant:,.0f}",
        )
        for each in differing[:count]
    ]


def footprint(said: Explanation) -> list[Row]:
    """What, baseline, variant, difference; counts, not per unit of work."""
    return [
        (name, f"{pair.baseline:,.0f}", f"{pair.variant:,.0f}", f"{pair.difference:+,.0f}" if pair.difference else "0")
        for name, pair in (
            ("functions", said.footprint.functions),
            ("their size, bytes", said.footprint.code_bytes),
            ("cache lines (64 bytes)", said.footprint.lines),
            ("hot cache lines (99 % of instructions)", said.footprint.hot_lines),
            ("pages (4 kB)", said.footprint.pages),
        )
    ]


def sentence(found: Inlining, unit: str) -> str:
    """`fput is inlined into ksys_read (12 calls/op gone)`; `seems` where no line table says so."""
    proof = {None: "", True: ", by the line tables", False: ", not in the line tables"}[found.confirmed]
    verb = "is" if found.confirmed else "seems"
    how, what = ("inlined", "gone") if found.appeared else ("no longer inlined", "came")
    return f"{found.callee} {verb} {how} into {found.caller} ({amount(found.calls)} calls/{unit} {what}{proof})"


def _named(each: FunctionChange) -> str:
    """`do_read (.isra.0)`: a function that isn't only called what it is called in the source."""
    suffixes = {HASH.sub(".llvm", name).removeprefix(each.function) for name in each.clones} - {""}
    return f"{each.function} ({', '.join(sorted(suffixes))})" if suffixes else each.function


def _three(pair: Pair) -> Row:
    return amount(pair.baseline), amount(pair.variant), change(pair.difference)


def _differs(*differences: float) -> bool:
    return any(abs(difference) >= SMALLEST for difference in differences)
