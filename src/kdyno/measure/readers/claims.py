"""Files with published results about the data: statistics of pairs, and tables of means and standard deviations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kdyno.measure.readers.errors import NoClaim, TooLarge
from kdyno.measure.readers.roles import fold_name
from kdyno.measure.readers.sheet import SheetGrid, is_printed_number

_COLUMNS = {
    "benchmark": ("benchmark", "machine", "test", "metric", "workload", "host"),
    "pair": ("pair", "comparison", "contrast", "groups", "variants"),
    "first": ("first", "a", "group_1", "group1", "variant_1"),
    "second": ("second", "b", "group_2", "group2", "variant_2"),
    "q": ("q", "statistic", "tukey_q", "q_statistic"),
    "p": ("p", "p_value", "pvalue", "p_adj", "p_adjusted"),
}
_VERSUS = re.compile(r" (?:vs\.?|versus|against|and|-|–|/) ", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
MOST_CLAIMS = 1000
"""Published statistics, and published means that are checked against values."""


@dataclass(frozen=True)
class Claim:
    """A pair's statistic as it was printed, with the names that were printed with it."""

    file: str
    line: int
    benchmark: str
    """Empty if nothing was printed."""
    first: str
    second: str
    q: str
    p: str
    """The p-value; empty if it wasn't published."""


def looks_like(header: Sequence[str]) -> bool:
    columns = _columns(header)
    return "q" in columns and ("pair" in columns or {"first", "second"} <= columns.keys())


def read(grid: SheetGrid, file: str) -> list[Claim]:
    """Return the claims in a table of published statistics. Raise NoClaim and TooLarge."""
    if len(grid.rows) > MOST_CLAIMS:
        raise TooLarge(file=file, most=MOST_CLAIMS, what="published statistics")
    columns = _columns(grid.header)
    claims = []
    for row in grid.rows:
        text = {role: row.cells[index] for role, index in columns.items()}
        pair = (
            _VERSUS.split(" ".join(text["pair"].split()))
            if "pair" in text
            else [text.get("first", ""), text.get("second", "")]
        )
        if len(pair) != 2:
            raise NoClaim(file=file, line=row.line, why=f"{text['pair']!r} is not a pair like `a vs b`")
        q, p = text.get("q", ""), text.get("p", "")
        if not is_printed_number(q) or (p and not is_printed_number(p)):
            raise NoClaim(file=file, line=row.line, why=f"Q {q!r} or p {p!r} is not a number")
        claims.append(Claim(file, row.line, text.get("benchmark", ""), pair[0], pair[1], q, p))
    return claims


def _columns(header: Sequence[str]) -> dict[str, int]:
    """Return the column of each role."""
    names = [fold_name(name) for name in header]
    return {
        role: names.index(matches[0])
        for role, spellings in _COLUMNS.items()
        if (matches := [name for name in spellings if name in names])
    }


def match_name(text: str, names: Mapping[str, str]) -> str | None:
    """Return the name that a text stands for: exactly, in whatever case, or the only one that it is a part of, or whose
    words it has.

    `names` may have several names for one thing.
    """
    text = text.strip()
    if text in names:
        return names[text]
    low, words = text.lower(), _padded_words(text)
    for alike in (
        {thing for name, thing in names.items() if name.lower() == low},
        {thing for name, thing in names.items() if low and low in name.lower()},
        {thing for name, thing in names.items() if _padded_words(name).strip() and _padded_words(name) in words},
    ):
        if alike:
            return alike.pop() if len(alike) == 1 else None
    return None


@lru_cache(maxsize=4096)
def _padded_words(text: str) -> str:
    """Return the words of a name, each between blanks."""
    return f" {' '.join(_WORD.findall(text.lower()))} "
