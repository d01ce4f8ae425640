"""Making two kernels' stacks comparable where one has a function inlined that the other calls.

Without this, a function inlined low in the stack would make all that it calls look gone in the one place and new in the
other.
"""

from __future__ import annotations

from kdyno.understand.explain.measured import MeasuredRegion
from kdyno.understand.explain.tree import Frame, Side, merged

ALIKE = 0.5
"""The part of what a frame calls that the other kernel must call from the frame's place."""
DEEPEST = 4
"""How many functions may have been inlined into one another."""
MATTERS = 0.001
"""Frames with less than this part of all instructions are let be: nobody sees them."""
ABSENT = 0.05
"""A frame is absent in a kernel that has less than this part of the other's instructions in it."""


def aligned(baseline: MeasuredRegion, variant: MeasuredRegion) -> Frame:
    """The stacks of both regions as one tree, made comparable."""
    root = merged(baseline, variant)
    align(root)
    return root


def align(root: Frame) -> None:
    """Dissolve every frame that only one kernel has, and whose callees the other calls from the frame's place.

    That is from the frame's caller, which has it inlined, or from a frame beside it that only the other kernel has: of
    two functions, one of which ends in a jump to the other, either may be left. The frame's own instructions then count
    as those of its caller, or of the frame beside it.
    """
    smallest = MATTERS * max(root.total.baseline, root.total.variant)
    waiting = [root]
    while waiting:
        caller = waiting.pop()
        while dissolvable := _dissolvable(caller, smallest):
            frame, into = dissolvable
            del caller.children[frame.name, frame.kind]
            if into is not caller:
                into.total.add(frame.total)
            into.absorb(frame)
        waiting.extend(caller.children.values())


def _dissolvable(caller: Frame, smallest: float) -> tuple[Frame, Frame] | None:
    """A frame to dissolve, and the one that takes its place."""
    lone = [
        (frame, side)
        for frame in caller.sorted_children()
        if frame.children and (side := _alone_in(frame)) and frame.total.of(side) >= smallest
    ]
    for frame, side in lone:
        if _moved(frame, caller, side, DEEPEST) >= ALIKE * _called(frame, side) > 0:
            return frame, caller
    for frame, side in lone:
        for beside, other in lone:
            if side == "baseline" and other == "variant" and _alike(frame, side, beside, other):
                return frame, beside
    return None


def _moved(frame: Frame, caller: Frame, side: Side, depth: int) -> float:
    """Instructions of what `frame` calls in this kernel, and `caller` in the other one only."""
    moved = 0.0
    for key, child in frame.children.items():
        instead = caller.children.get(key)
        if instead is not None and instead is not frame and _alone_in(instead) not in (None, side):
            moved += child.total.of(side)
        elif depth > 1:
            moved += _moved(child, caller, side, depth - 1)
    return moved


def _alike(frame: Frame, side: Side, beside: Frame, other: Side) -> bool:
    """Whether two frames call the same functions, each in its kernel."""
    common = frame.children.keys() & beside.children.keys()
    return all(
        sum(caller.children[key].total.of(kernel) for key in common) >= ALIKE * _called(caller, kernel) > 0
        for caller, kernel in ((frame, side), (beside, other))
    )


def _called(frame: Frame, side: Side) -> float:
    return sum(child.total.of(side) for child in frame.children.values())


def _alone_in(frame: Frame) -> Side | None:
    """The only kernel that has this frame."""
    if frame.total.variant <= ABSENT * frame.total.baseline:
        return "baseline"
    return "variant" if frame.total.baseline <= ABSENT * frame.total.variant else None
