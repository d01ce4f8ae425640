"""The layout of a flame graph's frames. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kdyno.understand.explain.tree import Frame, Side

DEEPEST = 64
"""The most rows of a graph; deeper stacks are cut off."""


@dataclass(frozen=True)
class Box:
    """The place of a frame in the graph."""

    frame: Frame
    x: float
    """The instructions per unit of work to its left."""
    width: float
    """The width in instructions per unit of work."""
    row: int
    """The row; the root has row 0."""


def boxes(root: Frame, side: Side, narrowest: float) -> tuple[list[Box], int]:
    """Return the boxes of one kernel's frames, callees above the left part of their caller; and the omitted frames.

    Frames narrower than `narrowest` and deeper than DEEPEST are left out with all their callees. Their number is a
    lower bound.
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
