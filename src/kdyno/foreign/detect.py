"""Which format a file is of, by its beginning."""

from __future__ import annotations

import json
from typing import Any

from kdyno.foreign import claims, hyperfine, lmbench, perf_stat, pyperf, stress_ng, summary
from kdyno.foreign.asked import Asked, Format
from kdyno.foreign.errors import Broken
from kdyno.foreign.sheet import has_pipe_table, shape
from kdyno.foreign.source import Source

NAMES: dict[Format, str] = {
    "csv": "CSV, one value a row",
    "table": "a table of means and standard deviations",
    "hyperfine": hyperfine.FORMAT,
    "pyperf": pyperf.FORMAT,
    "lmbench": lmbench.FORMAT,
    "stress-ng": stress_ng.FORMAT,
    "perf": perf_stat.FORMAT,
}


def detect(source: Source, asked: Asked) -> Format:
    """Find out the format. Raises Broken, and what Source.require_text raises."""
    source.require_text()
    head = source.head
    if lmbench.looks_like(head):
        return "lmbench"
    if head.lstrip()[:1] in ("{", "["):
        return _json(source)
    if perf_stat.looks_like(head):
        return "perf"
    if stress_ng.looks_like(head):
        return "stress-ng"
    if has_pipe_table(head):
        return "table"
    found = shape(source)
    if summary.is_long(found.header, asked) or summary.is_wide(found.first):
        return "table"
    return "csv"


def is_claims(source: Source) -> bool:
    """Whether a file is nothing but a list of published statistics."""
    source.require_text()
    head = source.head
    if head.lstrip()[:1] in ("{", "[", "") or has_pipe_table(head) or perf_stat.looks_like(head):
        return False
    if stress_ng.looks_like(head) or lmbench.looks_like(head):
        return False
    return claims.looks_like(shape(source).header)


def _json(source: Source) -> Format:
    document: Any
    try:
        document = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        raise Broken(file=source.shown, format="JSON", why=str(error)) from error
    if hyperfine.looks_like(document):
        return "hyperfine"
    if pyperf.looks_like(document):
        return "pyperf"
    raise Broken(file=source.shown, format="JSON", why="it is neither hyperfine's nor pyperf's")
