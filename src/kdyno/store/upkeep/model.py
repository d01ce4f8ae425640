"""What `kdyno store gc` says."""

from __future__ import annotations

from kdyno.base.frozen import Frozen


class PartUse(Frozen):
    """One part of the state directory, or of its store."""

    part: str
    holds: str
    """What it is, for people."""
    things: int
    bytes: int | None
    """On the disk; None where that can't be told: of boots in a store."""
    unneeded: int
    """Things that no run, no soak, and nothing that is kept refers to."""
    unneeded_bytes: int | None
    young: int
    """Of these, those that are too young to go, after --older-than."""


class StoreUse(Frozen):
    """`kdyno store gc --json`"""

    state: str
    stores: tuple[str, ...]
    """Whose runs were looked at."""
    runs: int
    parts: tuple[PartUse, ...]
    at_work: tuple[str, ...]
    """Locks that another kdyno holds: while it works, nothing is removed."""
    removed: bool
    """Whether what may go is gone."""

    @property
    def may_go(self) -> int:
        """Things that may go now."""
        return sum(part.unneeded - part.young for part in self.parts)
