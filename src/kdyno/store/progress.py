"""The progress of a run: which of its boots are done, which are left, and which variants were given up. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kdyno.base.measurement import BootStatus

Cell = tuple[str, int]
"""A variant and a block: the place of one boot."""
GIVEN_UP_AFTER = 2
"""A variant whose boots failed so often, and never succeeded, is not started again."""


class Ended(Protocol):
    """The end of a recorded boot."""

    @property
    def status(self) -> BootStatus: ...
    @property
    def reason(self) -> str: ...


class Placed(Ended, Protocol):
    """The end of a boot in its place in a run."""

    @property
    def variant(self) -> str: ...
    @property
    def block(self) -> int: ...


@dataclass(frozen=True)
class Progress:
    """The cells that a run is to fill, in order, and the ends of those that have a boot."""

    cells: Sequence[Cell]
    ended: Mapping[Cell, Ended]
    """Cells whose boot is `ok` or `failed`, in the order of the boots. A lost boot leaves its cell empty."""

    @classmethod
    def from_boots(cls, cells: Iterable[Cell], boots: Iterable[Placed]) -> Progress:
        """Return the progress after these boots, which may include lost ones, or those of other cells."""
        wanted = list(cells)
        ends = {(boot.variant, boot.block): boot for boot in boots if boot.status != "lost"}
        among = set(wanted)
        return cls(wanted, {cell: end for cell, end in ends.items() if cell in among})

    @cached_property
    def given_up(self) -> dict[str, str]:
        """Return the variants that are not started again, and how the last of their boots failed."""
        ends: dict[str, list[Ended]] = defaultdict(list)
        for (variant, _), end in self.ended.items():
            ends[variant].append(end)
        return {
            variant: own[-1].reason
            for variant, own in ends.items()
            if is_given_up(len(own), sum(end.status == "failed" for end in own))
        }

    @cached_property
    def left(self) -> list[Cell]:
        """Return the cells that still need a boot."""
        return [cell for cell in self.cells if cell not in self.ended and cell[0] not in self.given_up]

    @property
    def is_complete(self) -> bool:
        return not self.left

    @property
    def complete_blocks(self) -> int:
        """Return the number of blocks from the first on that have nothing left to do."""
        if self.left:
            return min(block for _, block in self.left)
        return 1 + max((block for _, block in self.cells), default=-1)


def is_given_up(done: int, failed: int) -> bool:
    """Return whether a variant of which so many boots are `ok` or `failed` is not started again."""
    return failed >= GIVEN_UP_AFTER and failed == done
