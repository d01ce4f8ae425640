"""The report of `kdyno store gc`."""

from __future__ import annotations

from kdyno.base.frozen import Frozen


class PartUse(Frozen):
    """One part of the state directory, or of its store."""

    part: str
    holds: str
    """The content in words."""
    things: int
    bytes: int | None
    """Bytes on the disk; None if they can't be measured: those of boots in a store."""
    unneeded: int
    """Things that no run, no soak, and nothing that is kept refers to."""
    unneeded_bytes: int | None
    young: int
    """The number of these that --older-than keeps because they are too young."""


class StoreUse(Frozen):
    """The output of `kdyno store gc --json`."""

    state: str
    stores: tuple[str, ...]
    """The stores whose runs were looked at."""
    runs: int
    parts: tuple[PartUse, ...]
    at_work: tuple[str, ...]
    """Locks that another kdyno holds: while it works, nothing is removed."""
    removed: bool
    """Whether the garbage was removed."""

    @property
    def may_go(self) -> int:
        """Return the number of things that may be removed now."""
        return sum(part.unneeded - part.young for part in self.parts)
