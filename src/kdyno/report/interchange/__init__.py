"""The verdicts of a run in formats that other programs read: Markdown, JUnit XML, and JSON for KCIDB."""

from __future__ import annotations

from collections.abc import Callable

from kdyno.judge.verdicts.model import RunReport
from kdyno.report.interchange import junit, kcidb, markdown

FORMATS: dict[str, Callable[[RunReport], str]] = {
    "junit": junit.render,
    "kcidb": kcidb.render,
    "markdown": markdown.render,
}
"""By the name that `kdyno report --format` has for it, the function that returns the whole document."""
