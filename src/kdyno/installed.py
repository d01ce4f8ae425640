"""The programs that were built and installed with this kdyno."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path


def installed(program: str) -> Path | None:
    """The program beside kdyno's own command, else the one in PATH, else None."""
    beside = scripts() / program
    found = str(beside) if beside.is_file() else shutil.which(program)
    return Path(found) if found else None


def scripts() -> Path:
    """Where kdyno's own command is."""
    return Path(sysconfig.get_path("scripts"))
