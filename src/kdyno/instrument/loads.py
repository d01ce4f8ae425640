"""kdyno-loads, the program with the loads of published accounts: which commands run it, and where it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdyno.installed import find_program

LOADS = "kdyno-loads"


def find_loads() -> Path:
    """Raises ProgramMissing."""
    return find_program(LOADS, "a load")


def names_loads(command: Sequence[str]) -> bool:
    """Whether a command runs it, by itself or by a shell."""
    return any(LOADS in word for word in command)
