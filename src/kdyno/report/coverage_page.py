"""Pages of coverage: a source with counts, and the frame around it. No scripts, nothing from elsewhere.

Source text is foreign: it is escaped here, and the page's policy allows no script at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kdyno.base.text import clean_line
from kdyno.report.filters import cleaned
from kdyno.report.packing import source_hash
from kdyno.understand.coverage.model import Totals

CONTEXT = 8
"""Lines without code that are shown before and after code."""
SHORTEST_GAP = 24
"""The fewest lines that are left out; fewer are shown."""
NUMBER, COUNT, TAB = 6, 14, 8
"""Columns of a line's number, of each count, and of a tab. With two spaces before it a count ends where a tab does."""


@dataclass(frozen=True)
class Style:
    text: Markup

    @property
    def policy(self) -> Markup:
        hashed = source_hash(self.text)
        return Markup(f"default-src 'none'; style-src {hashed}; base-uri 'none'; form-action 'none'")


@dataclass(frozen=True)
class Key:
    """The meaning of a colour."""

    mark: str
    text: str


@dataclass(frozen=True)
class ShownLine:
    """How one line is shown."""

    mark: str
    """The class of its colour."""
    counts: tuple[int, ...]
    title: str = ""


def listing(text: Sequence[str], shown: Mapping[int, ShownLine], columns: int) -> Markup:
    """Return a source with the counts of the lines that have code; `columns` is how many counts each has."""
    return Markup("\n".join(_lines(text, shown, columns)))


def _lines(text: Sequence[str], shown: Mapping[int, ShownLine], columns: int) -> Iterator[str]:
    blank = "\t" * (1 + columns * (COUNT + 2) // TAB)
    coded = sorted(shown)
    kept = _shown_stretches(coded, len(text))
    after = 0
    for first, last in kept:
        if first > after + 1:
            yield f"<u>{' ' * NUMBER}  {first - after - 1:,} lines without code</u>"
        for number in range(first, last + 1):
            source = escape(_visible(text[number - 1]))
            line = shown.get(number)
            if line is None:
                yield f"{number:{NUMBER}}{blank}{source}"
                continue
            counts = "".join(f"  {count:{COUNT},}" for count in line.counts)
            title = f' title="{escape(line.title)}"' if line.title else ""
            yield f"<i class={line.mark} id=L{number}{title}>{number:{NUMBER}}{counts}  {source}</i>"
        after = last
    if after < len(text):
        yield f"<u>{' ' * NUMBER}  {len(text) - after:,} lines without code</u>"


def _visible(line: str) -> str:
    """Return the line with its tabs, and without all other characters that steer."""
    return (
        line
        if line.isascii() and line.replace("\t", "").isprintable()
        else "\t".join(map(clean_line, line.split("\t")))
    )


def _shown_stretches(coded: Sequence[int], length: int) -> list[tuple[int, int]]:
    """Return the first and last lines of the stretches that are shown."""
    kept: list[tuple[int, int]] = []
    for number in coded:
        first, last = max(number - CONTEXT, 1), min(number + CONTEXT, length)
        if kept and first <= kept[-1][1] + SHORTEST_GAP:
            kept[-1] = (kept[-1][0], last)
        else:
            kept.append((1 if first <= SHORTEST_GAP else first, last))
    if kept and length - kept[-1][1] < SHORTEST_GAP:
        kept[-1] = (kept[-1][0], length)
    return kept


def render(template: str, **facts: Any) -> str:
    return _environment().get_template(template).render(style=_style(), **facts)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kdyno.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=cleaned,
    )
    environment.filters |= {"count": lambda number: f"{number:,}", "share": share}
    return environment


@cache
def _style() -> Style:
    text = (files("kdyno.report") / "templates" / "coverage.css").read_text(encoding="utf-8")
    return Style(Markup(text))


def share(totals: Totals) -> str:
    return percent(totals.executed, totals.lines)


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
