"""A verdict as Markdown, for a change request or a mail: GitHub's, GitLab's, and readable as it is. Pure.

A text that a guest or a file gave is shown as code. There nothing is a link, a mention or markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from kdyno.base.text import clean, limit
from kdyno.judge.stats.verdict import BETTER, WORSE
from kdyno.judge.verdicts.model import RunReport
from kdyno.judge.verdicts.rows import VerdictRow, group_sentences, judged_of_variant, scope_mark, table_rows
from kdyno.report.summary import summary_line

PLAIN_CODE = re.compile(r"[A-Za-z0-9 ._+,:;/()%=@#*?!&^$'\"\[\]{}~<>-]+")
"""What a code span between two backticks shows as it is, in a table too."""
PLAIN_WORD = re.compile(r"[A-Za-z0-9,.;:%'()+=/—-]+")
"""A word of a sentence that is never markup. A link is excluded by LINK."""
QUOTED = re.compile(r"(`[^`]+`)")
"""What a sentence of kdyno quotes; `split` keeps it."""
LINK = re.compile(r"://|www\.", re.IGNORECASE)
COLUMNS = ("benchmark", "baseline", "variant", "effect", "interval", "verdict")
EQUIVALENT = "equivalent"


def render(report: RunReport) -> str:
    """Return the document."""
    return "\n".join(_lines(report)).rstrip("\n") + "\n"


def code(text: str) -> str:
    """Return a text as code, whatever characters it has."""
    shown = clean(text)
    if not shown:
        return ""
    if PLAIN_CODE.fullmatch(shown) and shown == shown.strip():
        return f"`{shown}`"
    return f"<code>{''.join(c if c.isalnum() or c == ' ' else f'&#{ord(c)};' for c in shown)}</code>"


def sentence(text: str) -> str:
    """Return a sentence with every word as code that could be markup."""
    parts = QUOTED.split(clean(text))
    return "".join(code(part[1:-1]) if place % 2 else _words(part) for place, part in enumerate(parts))


def _words(text: str) -> str:
    return " ".join(
        word if not word or (PLAIN_WORD.fullmatch(word) and not LINK.search(word)) else code(word)
        for word in text.split(" ")
    )


def _lines(report: RunReport) -> Iterator[str]:
    yield f"## kdyno: {code(report.title)}"
    yield ""
    yield f"Run {code(report.run.id[:12])}, {sentence(report.measured)}. Margin: {limit(report.margin)} %."
    for variant in report.others:
        rows = table_rows(report, variant)
        yield from ("", f"### {code(variant)} against {code(report.baseline)}", "")
        yield f"**{sentence(_summary(report, variant, rows))}**"
        yield from _table(rows)
        yield from _equivalent(rows, report.margin)
        if sentences := group_sentences(rows, lambda row: row.reason):
            yield ""
            for names, reason in sentences:
                yield f"- {_code_list(names.split(', '))}: {sentence(reason)}"
    if report.checks:
        yield from ("", *(f"- KUnit: {sentence(check.in_words())}" for check in report.checks))
    if report.notices:
        yield from ("", *(f"- Note: {sentence(notice)}" for notice in report.notices))
    yield from ("", f"Repeat it: `kdyno show {clean(report.run.id[:12])} --reproduce` prints the command.")


def _summary(report: RunReport, variant: str, rows: Sequence[VerdictRow]) -> str:
    """Return the summary without the name of the variant, which is in the heading."""
    name = f"{clean(variant)}{scope_mark(judged_of_variant(report, variant))}: "
    mark = scope_mark(judged_of_variant(report, variant))
    return summary_line(report, variant, rows).removeprefix(name) + mark


def _table(rows: Sequence[VerdictRow]) -> Iterator[str]:
    """Yield the rows that a reader acts on: worse ones first, then better ones, then undecided ones, the mean last."""
    ranked = sorted((row for row in rows if _is_listed(row)), key=_rank)
    if not ranked:
        return
    yield ""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for row in ranked:
        name = row.name if row.is_mean else code(row.name)
        unit = f" {sentence(row.unit)}" if row.unit and not row.is_mean else ""
        values = (f"{value}{unit}" if value else "" for value in (row.baseline, row.variant))
        verdict = row.verdict_shown or "not compared"
        shown = f"**{verdict}**" if row.verdict in WORSE else verdict
        yield f"| {' | '.join((name, *values, row.effect, row.interval, shown))} |"


def _is_listed(row: VerdictRow) -> bool:
    return row.is_mean or row.verdict != EQUIVALENT


def _rank(row: VerdictRow) -> tuple[bool, int, float]:
    groups = (WORSE, BETTER)
    group = next((place for place, verdicts in enumerate(groups) if row.verdict in verdicts), len(groups))
    return row.is_mean, group, -abs(row.span.mid) if row.span else 0.0


def _equivalent(rows: Sequence[VerdictRow], margin: float) -> Iterator[str]:
    names = [row.name for row in rows if not _is_listed(row)]
    if names:
        yield from ("", f"Equivalent within {limit(margin)} %: {_code_list(_grouped(names))}.")


def _grouped(names: Sequence[str]) -> list[str]:
    """Return the names of benchmarks, those of one test as `lat_ctx.2p_0k,2p_16k`."""
    tests = groupby(sorted(names), key=lambda name: name.partition(".")[0])
    return [f"{test}.{','.join(name.partition('.')[2] for name in group)}".rstrip(".") for test, group in tests]


def _code_list(names: Sequence[str]) -> str:
    return ", ".join(map(code, names))
