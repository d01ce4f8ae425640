"""kdyno-loads, the program with the loads of published accounts: its path, and the commands that run it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from kdyno.base.installed import find_program
from kdyno.measure.guest.job import Program

LOADS = "kdyno-loads"


def find_loads() -> Path:
    """Return its path. Raise ProgramMissing."""
    return find_program(LOADS, "a load")


def names_loads(command: Sequence[str]) -> bool:
    """Return whether a command runs it, directly or by a shell."""
    return any(LOADS in word for word in command)


def uses_loads(programs: Iterable[Program]) -> bool:
    """Return whether a step of one of the programs runs it."""
    return any(names_loads(step) for program in programs for step in program.steps)


def digest_of_loads(programs: Iterable[Program]) -> dict[str, str]:
    """Return `loads` and the SHA-256 of the program, if a step of one of these runs it. Raise ProgramMissing."""
    if not uses_loads(programs):
        return {}
    path = find_loads()
    return {"loads": _digest(path, path.stat().st_mtime_ns)}


@lru_cache(maxsize=1)
def _digest(path: Path, changed_ns: int) -> str:  # noqa: ARG001
    """Return the digest of a file, which is read once as long as it isn't changed: every boot's key needs it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
