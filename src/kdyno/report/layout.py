"""Which columns the tables of verdicts have, and how wide they are, on a page of a given width. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len

from kdyno.base.short_names import shorten_names
from kdyno.base.terminal import NARROWEST_NAME
from kdyno.judge.verdicts.rows import VerdictRow

Column = Literal["benchmark", "baseline", "variant", "effect", "bar", "verdict", "sees"]

COLUMNS: tuple[Column, ...] = ("benchmark", "baseline", "variant", "effect", "bar", "verdict", "sees")
DROPPED: tuple[Column, ...] = ("sees", "bar", "baseline", "variant")
"""The columns that a narrow page lacks, the first to go first. Effects and verdicts are always shown."""
NARROWEST_BAR, WIDEST_BAR = 8, 41
READABLE_NAME = 24
"""Columns are left out before names become shorter than this."""
BETWEEN = 1
"""Spaces between two columns."""
INDENT = "  "
"""The beginning of the further lines of a wrapped text."""
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class TableLayout:
    """The columns of all tables of a report, so that they are alike."""

    widths: Mapping[Column, int]
    """By column, from left to right; a column that is left out is missing."""
    names: Mapping[str, str]
    """The text to show for the name of each row."""
    short_scope: bool
    """Whether verdicts show their scope as `(boots)` instead of `(these boots)`."""
    left_out: tuple[Column, ...]
    """The columns that the page has no space for, from left to right."""
    whole_width: int
    """The width of a page that has all columns."""

    @property
    def width(self) -> int:
        return _width(self.widths.values())

    def cells(self, row: VerdictRow) -> dict[Column, str]:
        """Return the texts of a row by column, without the bar, which depends on the axis."""
        texts = _texts(row, short_scope=self.short_scope, has_baseline="baseline" in self.widths)
        texts["benchmark"] = self.names[row.name]
        return {column: texts[column] for column in self.widths if column != "bar"}


def lay_out(rows: Sequence[VerdictRow], width: int) -> TableLayout:
    """Return the layout of tables with these rows on a page of `width` columns.

    Numbers and verdicts are never cut. If the page is too narrow, columns are left out in the order of DROPPED, then
    names are shortened. A page that is narrower than names, effects and verdicts gets a table that is wider than the
    page. Bars and *sees* are left out everywhere if no row has one.
    """
    whole_name = max((cell_len(row.name) for row in rows), default=0)
    readable_name = min(max(whole_name, len("benchmark")), READABLE_NAME)
    is_filled = {"bar": any(row.span for row in rows), "sees": any(row.sensitivity for row in rows)}
    filled = [column for column in COLUMNS if is_filled.get(column, True)]
    whole_width = _width(_needed(rows, filled, readable_name, short_scope=True).values())
    for number in range(len(DROPPED) + 1):
        columns = [column for column in filled if column not in DROPPED[:number]]
        left_out = tuple(column for column in filled if column not in columns)
        for short_scope in (False, True):
            needed = _needed(rows, columns, readable_name, short_scope=short_scope)
            if _width(needed.values()) <= width:
                return TableLayout(*_fill(rows, needed, width), short_scope, left_out, whole_width)
    remaining_width = width - _width(needed.values()) + readable_name
    needed["benchmark"] = max(min(NARROWEST_NAME, readable_name), remaining_width)
    return TableLayout(*_fill(rows, needed, width), short_scope, left_out, whole_width)


def wrap_text(text: str, width: int) -> list[str]:
    """Return the lines of a text that is wrapped between words; all but the first are indented. A number and its
    percent sign stay together.
    """
    if cell_len(text) <= width:
        return [text]
    before = text[: len(text) - len(text.lstrip())]
    lines = textwrap.wrap(
        text.replace(" %", f"{NO_BREAK}%"),
        max(width, len(before) + len(INDENT) + 1),
        subsequent_indent=before + INDENT,
        break_on_hyphens=False,
    )
    return [line.replace(NO_BREAK, " ") for line in lines]


def _needed(
    rows: Sequence[VerdictRow], columns: Sequence[Column], name_width: int, *, short_scope: bool
) -> dict[Column, int]:
    """Return the smallest widths of columns."""
    texts = [_texts(row, short_scope=short_scope, has_baseline="baseline" in columns) for row in rows]
    widths: dict[Column, int] = {}
    for column in columns:
        widths[column] = max(len(column), *(cell_len(row[column]) for row in texts)) if rows else len(column)
    widths["benchmark"] = name_width
    if "bar" in widths:
        widths["bar"] = NARROWEST_BAR
    return widths


def _fill(
    rows: Sequence[VerdictRow], needed: Mapping[Column, int], width: int
) -> tuple[dict[Column, int], Mapping[str, str]]:
    """Return the widths with the remaining space of the page, which whole names get first, then the bar; and the text
    to show for each name.
    """
    remaining_width = max(0, width - _width(needed.values()))
    whole_name = max((cell_len(row.name) for row in rows), default=0)
    more = min(remaining_width, max(0, whole_name - needed["benchmark"]))
    widths = {**needed, "benchmark": needed["benchmark"] + more}
    if "bar" in widths:
        widths["bar"] = min(WIDEST_BAR, widths["bar"] + remaining_width - more)
    return widths, shorten_names([row.name for row in rows], widths["benchmark"])


def _texts(row: VerdictRow, *, short_scope: bool, has_baseline: bool) -> dict[Column, str]:
    """Return the texts of a row. The unit is shown once: with the baseline, or else with the variant's value."""
    verdict = row.verdict_shown or "none"
    value = row.variant if has_baseline else f"{row.variant} {row.unit}"
    return {
        "benchmark": row.name,
        "baseline": f"{row.baseline} {row.unit}".strip(),
        "variant": value.strip(),
        "effect": row.effect,
        "bar": "",
        "verdict": verdict.replace("(these ", "(") if short_scope else verdict,
        "sees": row.sensitivity,
    }


def _width(widths: Collection[int]) -> int:
    return sum(widths) + BETWEEN * (len(widths) - 1)
