"""What the tools that write tables of docs/ from docs/results share: cells, verdicts of a row, a table in its place.

A table stands below a comment that names its tool: `<!-- tools/builds-table: local -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kdyno.judge.stats.observations import ReplicateSample
from kdyno.judge.stats.scaling.levels import ProcessLevel, ratio_of

DOCS = Path(__file__).resolve().parent.parent / "docs"
RESULTS = DOCS / "results"
MARGIN = 0.01
AFTER = re.compile(r"\A(?:\|.*\n)*\n?")
"""The table that a text begins with, and the empty line that ends it."""
Result = dict[str, Any]
"""A run, as tools/results keeps it."""


def kept(name: str) -> Result | None:
    """Return the result with this name; None if it isn't there."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def values_of(run: Result | None, benchmark: str, variant: str) -> list[float]:
    """Return the values of each boot or round; empty if the run has none."""
    return run["values"].get(benchmark, {}).get(variant, []) if run else []


def percent(fraction: float) -> str:
    if abs(fraction) < 5e-5:
        return "0 %"
    return f"{100 * fraction:+.{2 if abs(fraction) < 0.995 else 3}g} %"


def effect(row: Mapping[str, Any]) -> str:
    """Return the effect of a verdict, with its interval."""
    span = "" if row["low"] is None else f" ({percent(row['low'] - 1)} to {percent(row['high'] - 1)})"
    return f"{percent(row['ratio'] - 1)}{span}"


def paired_ratio(of: Sequence[float], over: Sequence[float]) -> tuple[float, float | None, float | None]:
    """Return the ratio within blocks, and its 95 % interval where there is one."""
    blocks = np.arange(len(of))
    levels = [
        ProcessLevel(1, ReplicateSample(np.array(values, dtype=np.float64), blocks=blocks, clusters=None))
        for values in (of, over)
    ]
    return ratio_of(*levels)


def verdict_on(low: float | None, high: float | None, below: str, above: str) -> str:
    """Return the verdict on one ratio, uncorrected; `below` and `above` are the words for less and more than 1."""
    if low is None or high is None:
        return "undecided"
    if low >= 1 - MARGIN and high <= 1 + MARGIN:
        return "equivalent"
    if high < 1:
        return below
    return above if low > 1 else "undecided"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "---") -> str:
    """Return Markdown, with the empty line that ends it; `align` is for all columns but the first."""
    lines = [header, ("---", *(align,) * (len(header) - 1)), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def write(document: Path, tool: str, tables: Mapping[str, str]) -> None:
    """Put each table below the comment that names it."""
    text = document.read_text(encoding="utf-8")
    for name, markdown in tables.items():
        label = f"tools/{tool}: {name}" if name else f"tools/{tool}"
        first, mark, rest = text.partition(f"<!-- {label} -->\n\n")
        text = first + mark + (markdown + AFTER.sub("", rest, 1) if mark else "")
    document.write_text(text, encoding="utf-8")


def stale_table(document: Path, name: str, markdown: str, write: bool) -> list[str]:
    """Return what is wrong with the table that tools/check-docs keeps below the comment with this name; empty if it is
    written anew.
    """
    place, text = document.name, document.read_text(encoding="utf-8")
    first, mark, rest = text.partition(f"<!-- tools/check-docs: {name} -->\n\n")
    if not mark:
        return [f"{place} has no comment for the table `{name}`"]
    now = first + mark + markdown + AFTER.sub("", rest, 1)
    if write:
        document.write_text(now, encoding="utf-8")
    elif now != text:
        return [f"{place}: the table `{name}` is stale: tools/check-docs --write"]
    return []
