"""Putting a report where the user wants it: standard output, a file, or both."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.base.talk import Talk
from kdyno.base.terminal import console, data, text_console
from kdyno.judge.verdicts.model import Report, to_json

if TYPE_CHECKING:
    from kdyno.store.artefacts import Artefacts


def print_report(
    report: Report, *, as_json: bool, html: Path | None, talk: Talk, artefacts: Artefacts | None = None
) -> None:
    """Print the report as a table or as JSON, and write it as HTML if a file is named.

    With `artefacts` the HTML says why variants differ, if the boots carry PMU records.
    """
    if as_json:
        data(to_json(report))
    else:
        print_tables(report)
    if html:
        from kdyno.report.html import write_html

        write_html(report, html, artefacts)
        talk.say(f"report: {html}")


def report_as_text(report: Report) -> str:
    """Return the tables that `print_tables` prints, as a file or a pipe gets them."""
    from kdyno.report.terminal import render

    text = io.StringIO()
    render(report, text_console(text))
    return text.getvalue()


def print_tables(report: Report) -> None:
    """Print the report as text to standard output; plain if that is not a terminal."""
    from kdyno.report.terminal import render

    render(report, console())
