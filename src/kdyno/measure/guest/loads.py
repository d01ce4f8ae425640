"""kdyno-loads, the program with the loads of published accounts: which commands run it, and where it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from kdyno.base.installed import find_program
from kdyno.measure.guest.job import Program

LOADS = "kdyno-loads"


def find_loads() -> Path:
    """Raises ProgramMissing."""
    return find_program(LOADS, "a load")


def names_loads(command: Sequence[str]) -> bool:
    """Return whether a command runs it, by itself or by a shell."""
    return any(LOADS in word for word in command)


def uses_loads(programs: Iterable[Program]) -> bool:
    """Return whether a step of one of the programs runs it."""
    return any(names_loads(step) for program in programs for step in program.steps)


def digest_of_loads(programs: Iterable[Program]) -> dict[str, str]:
    """`loads` and the SHA-256 of the program, where a step of one of these runs it. Raises ProgramMissing."""
    if not uses_loads(programs):
        return {}
    path = find_loads()
    return {"loads": _digest(path, path.stat().st_mtime_ns)}


@lru_cache(maxsize=1)
def _digest(path: Path, changed_ns: int) -> str:  # noqa: ARG001
    """Every boot's key needs it: a file is read once, as long as it isn't changed."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
