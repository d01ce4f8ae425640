"""Standard output for tables: its width, and the colours of verdicts."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 110
"""Columns of a table that goes to a file or a pipe."""
STYLES = {"faster": "green", "slower": "red", "equivalent": "cyan", "undecided": "yellow", "": "dim"}
NARROWEST_NAME = 12


def console() -> Console:
    """Standard output for tables: as wide as the terminal, and with its colours if it is one."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else int(os.environ.get("COLUMNS") or PLAIN_WIDTH)
    return Console(width=width or shutil.get_terminal_size().columns, highlight=False)
