"""The sentences on the rows of several tables, each printed once. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kdyno.base.text import clean, format_count, format_list
from kdyno.judge.verdicts.rows import VerdictRow

FEW = 4
"""Names of rows that are listed even if they are all there are."""


def sentence_lines(tables: Mapping[str, Sequence[VerdictRow]], text_of: Callable[[VerdictRow], str]) -> list[str]:
    """Return the lines for the sentences on rows: each sentence once, with the rows that it is about.

    `tables` are rows by variant. If a sentence is about different rows of several variants, a line for each variant
    follows it.
    """
    names: dict[str, dict[str, str]] = {}
    for variant, rows in tables.items():
        for text in dict.fromkeys(filter(None, map(text_of, rows))):
            names.setdefault(text, {})[variant] = _row_names(rows, [row for row in rows if text_of(row) == text])
    lines = []
    for text, by_variant in names.items():
        if len(by_variant) == len(tables) and len(set(by_variant.values())) == 1:
            lines.append(f"{next(iter(by_variant.values()))}: {text}")
        elif len(by_variant) == 1:
            [(variant, listed)] = by_variant.items()
            lines.append(f"{clean(variant)}, {listed}: {text}")
        else:
            lines.append(f"{text}:")
            lines += [f"  {clean(variant)}: {listed}" for variant, listed in by_variant.items()]
    return lines


def _row_names(rows: Sequence[VerdictRow], concerned: Sequence[VerdictRow]) -> str:
    """Return the names of the rows that a sentence is about, or that it is about all benchmarks of a table."""
    benchmarks = [row for row in rows if not row.is_mean]
    if len(benchmarks) > FEW and all(row in concerned for row in benchmarks):
        mean = " and their mean" if len(concerned) > len(benchmarks) else ""
        return f"all {format_count(len(benchmarks), 'benchmark')}{mean}"
    return format_list([row.name for row in concerned])
