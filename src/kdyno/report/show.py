"""Putting a report where the user wants it: standard output, a file, or both."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.report.model import Report, to_json
from kdyno.talk import Talk

if TYPE_CHECKING:
    from rich.console import Console

    from kdyno.store.artefacts import Artefacts

PLAIN_WIDTH = 110
"""Columns of a table that goes to a file or a pipe."""


def print_report(
    report: Report, *, as_json: bool, html: Path | None, talk: Talk, artefacts: Artefacts | None = None
) -> None:
    """Print the report as a table or as JSON, and write it as HTML if a file is named.

    With `artefacts` the HTML says why variants differ, if the boots carry PMU records.
    """
    if as_json:
        sys.stdout.write(to_json(report))
    else:
        print_tables(report)
    if html:
        from kdyno.report.html import write_html

        write_html(report, html, artefacts)
        talk.say(f"report: {html}")


def print_tables(report: Report) -> None:
    """The report as text on standard output; plain where that is not a terminal."""
    from kdyno.report.terminal import render

    render(report, console())


def console() -> Console:
    """Standard output for tables: as wide as the terminal, and with its colours if it is one."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else int(os.environ.get("COLUMNS") or PLAIN_WIDTH)
    return Console(width=width or shutil.get_terminal_size().columns, highlight=False)
