"""kdyno-loads, the program with the loads of published accounts: which commands run it, and where it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kdyno.base.installed import find_program
from kdyno.measure.guest.job import Program

LOADS = "kdyno-loads"


def find_loads() -> Path:
    """Raises ProgramMissing."""
    return find_program(LOADS, "a load")


def names_loads(command: Sequence[str]) -> bool:
    """Whether a command runs it, by itself or by a shell."""
    return any(LOADS in word for word in command)


def uses_loads(programs: Iterable[Program]) -> bool:
    """Whether a step of one of the programs runs it."""
    return any(names_loads(step) for program in programs for step in program.steps)
