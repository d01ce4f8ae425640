"""Published statistics of pairs: does each follow from the means and standard deviations published with it?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kdyno.foreign.errors import NoClaim, TooLarge
from kdyno.foreign.readings import Published
from kdyno.foreign.roles import folded
from kdyno.foreign.sheet import Grid, is_printed_number

_COLUMNS = {
    "benchmark": ("benchmark", "machine", "test", "metric", "workload", "host"),
    "pair": ("pair", "comparison", "contrast", "groups", "variants"),
    "first": ("first", "a", "group_1", "group1", "variant_1"),
    "second": ("second", "b", "group_2", "group2", "variant_2"),
    "q": ("q", "statistic", "tukey_q", "q_statistic"),
    "p": ("p", "p_value", "pvalue", "p_adj", "p_adjusted"),
}
_VERSUS = re.compile(r" (?:vs\.?|versus|against|and|-|–|/) ", re.IGNORECASE)
MOST_CLAIMS = 1000
MOST_VARIANTS = 50


@dataclass(frozen=True)
class Claim:
    """A pair's statistic as it was printed."""

    where: str
    """`FILE, line 3`"""
    benchmark: str
    first: str
    second: str
    q: str
    p: str
    """Empty if it wasn't published."""


def looks_like(header: Sequence[str]) -> bool:
    columns = _columns(header)
    return "q" in columns and ("pair" in columns or {"first", "second"} <= columns.keys())


def read(grid: Grid, file: str, published: Sequence[Published]) -> list[Claim]:
    """Read a table of claims about what was published; names may be shortened as long as they are clear.

    Raises NoClaim and TooLarge.
    """
    if len(grid.rows) > MOST_CLAIMS:
        raise TooLarge(file=file, most=MOST_CLAIMS, what="published statistics")
    columns = _columns(grid.header)
    benchmarks: dict[str, list[Published]] = {}
    for summary in published:
        benchmarks.setdefault(summary.benchmark, []).append(summary)
    claims = []
    for row in grid.rows:
        text = {role: row.cells[index] for role, index in columns.items()}
        if "q" not in text or not ("pair" in text or {"first", "second"} <= text.keys()):
            raise NoClaim(file=file, line=row.line, why="there is no pair with a Q in it")
        pair = (
            _VERSUS.split(" ".join(text["pair"].split()))
            if "pair" in text
            else [text.get("first", ""), text.get("second", "")]
        )
        if len(pair) != 2:
            raise NoClaim(file=file, line=row.line, why=f"{text['pair']!r} is not a pair like `a vs b`")
        if "benchmark" not in text and len(benchmarks) > 1:
            raise NoClaim(file=file, line=row.line, why="nothing says which benchmark the statistic is of")
        benchmark = _match(text.get("benchmark", next(iter(benchmarks))), {name: name for name in benchmarks})
        if benchmark is None:
            raise NoClaim(file=file, line=row.line, why=f"no benchmark like {text['benchmark']!r}")
        own = benchmarks[benchmark]
        if len(own) > MOST_VARIANTS:
            raise TooLarge(file=file, most=MOST_VARIANTS, what=f"variants of {benchmark} to check statistics of")
        if all(summary.n == 1 for summary in own):
            raise NoClaim(file=file, line=row.line, why=f"the means of {benchmark} are of one value each: no variance")
        names = {name: summary.variant for summary in own for name in (summary.variant, summary.label) if name}
        first, second = (_match(name, names) for name in pair)
        if first is None or second is None:
            wrong = pair[0] if first is None else pair[1]
            raise NoClaim(file=file, line=row.line, why=f"no variant like {wrong!r} in {benchmark}")
        q, p = text.get("q", ""), text.get("p", "")
        if not is_printed_number(q) or (p and not is_printed_number(p)):
            raise NoClaim(file=file, line=row.line, why=f"Q {q!r} or p {p!r} is not a number")
        claims.append(Claim(f"{file}, line {row.line}", benchmark, first, second, q, p))
    return claims


def _columns(header: Sequence[str]) -> dict[str, int]:
    """Role -> the column that has it."""
    names = [folded(name) for name in header]
    return {
        role: names.index(matches[0])
        for role, spellings in _COLUMNS.items()
        if (matches := [name for name in spellings if name in names])
    }


def _match(text: str, names: dict[str, str]) -> str | None:
    """The name that is meant: exactly, in whatever case, or the only one that it is a part of."""
    text = text.strip()
    if text in names:
        return names[text]
    low = text.lower()
    same = {names[name] for name in names if name.lower() == low} or {
        names[name] for name in names if low in name.lower()
    }
    return same.pop() if len(same) == 1 else None
