"""Where the frames of a flame graph go. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kdyno.understand.explain.tree import Frame, Side

DEEPEST = 64
"""Rows of a graph; stacks that are deeper are cut off."""


@dataclass(frozen=True)
class Box:
    """Where a frame is drawn."""

    frame: Frame
    x: float
    """Instructions per unit of work to the left of it."""
    width: float
    """Instructions per unit of work."""
    row: int
    """0 is the root's."""


def boxes(root: Frame, side: Side, narrowest: float) -> tuple[list[Box], int]:
    """The frames of one kernel as wide as their instructions, callees on top of their caller's left part.

    Frames below `narrowest` and those beyond DEEPEST are left out, with all that they call; returns how many there were
    of these at least.
    """
    placed: list[Box] = []
    left_out = 0
    waiting = [Box(root, 0.0, root.total.of(side), 0)] if root.total.of(side) > 0 else []
    while waiting:
        box = waiting.pop()
        placed.append(box)
        x = box.x
        for child in box.frame.sorted_children():
            width = child.total.of(side)
            if width >= narrowest and box.row + 1 < DEEPEST:
                waiting.append(Box(child, x, width, box.row + 1))
            elif width > 0:
                left_out += 1
            x += width
    return sorted(placed, key=lambda box: (box.row, box.x, box.frame.name, box.frame.kind)), left_out
