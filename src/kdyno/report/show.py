"""Putting a report where the user wants it: standard output, a file, or both."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from kdyno.report.model import RunReport, to_json
from kdyno.talk import Talk

PLAIN_WIDTH = 110
"""Columns of a table that goes to a file or a pipe."""


def print_report(report: RunReport, *, as_json: bool, html: Path | None, talk: Talk) -> None:
    """Print the report as a table or as JSON, and write it as HTML if a file is named."""
    if as_json:
        sys.stdout.write(to_json(report))
    else:
        print_tables(report)
    if html:
        from kdyno.report.html import write_html

        write_html(report, html)
        talk.say(f"report: {html}")


def print_tables(report: RunReport) -> None:
    """The report as text on standard output; plain where that is not a terminal."""
    from rich.console import Console

    from kdyno.report.terminal import render

    width = None if sys.stdout.isatty() else int(os.environ.get("COLUMNS") or PLAIN_WIDTH)
    render(report, Console(width=width or shutil.get_terminal_size().columns, highlight=False))
