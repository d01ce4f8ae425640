"""Makes the stacks of two kernels comparable if one of them has a function inlined that the other calls.

Without this, all callees of a function that is inlined low in the stack would seem to be gone in one place and new in
the other.
"""

from __future__ import annotations

from kdyno.understand.explain.measured import MeasuredRegion
from kdyno.understand.explain.tree import Frame, Side, merge_regions

ALIKE = 0.5
"""The share of a frame's callees that the other kernel must call from the place of the frame."""
DEEPEST = 4
"""The longest chain of inlined functions."""
MATTERS = 0.001
"""Frames with a smaller share of all instructions are left unchanged: they are not visible."""
ABSENT = 0.05
"""A frame is absent in a kernel if it has less than this share of its instructions in the other kernel."""


def align_regions(baseline: MeasuredRegion, variant: MeasuredRegion) -> Frame:
    """Merge the stacks of both regions to one tree, and make them comparable."""
    root = merge_regions(baseline, variant)
    align(root)
    return root


def align(root: Frame) -> None:
    """Dissolve every frame that only one kernel has, and whose callees the other calls from the place of the frame.

    That place is the caller of the frame, which has it inlined, or a sibling that only the other kernel has: if one
    function ends in a jump to another, either of them may remain. The instructions of the frame then count for its
    caller or its sibling.
    """
    smallest = MATTERS * max(root.total.baseline, root.total.variant)
    waiting = [root]
    while waiting:
        caller = waiting.pop()
        while dissolvable := _dissolvable(caller, smallest):
            frame, target = dissolvable
            del caller.children[frame.name, frame.kind]
            if target is not caller:
                target.total.add(frame.total)
            target.absorb(frame)
        waiting.extend(caller.children.values())


def _dissolvable(caller: Frame, smallest: float) -> tuple[Frame, Frame] | None:
    """Return a frame to dissolve, and the one that replaces it; None without such a frame."""
    lone = [
        (frame, side)
        for frame in caller.sorted_children()
        if frame.children and (side := _only_side(frame)) and frame.total.of(side) >= smallest
    ]
    for frame, side in lone:
        if _moved(frame, caller, side, DEEPEST) >= ALIKE * _callee_instructions(frame, side) > 0:
            return frame, caller
    for frame, side in lone:
        for sibling, sibling_side in lone:
            if side == "baseline" and sibling_side == "variant" and _alike(frame, side, sibling, sibling_side):
                return frame, sibling
    return None


def _moved(frame: Frame, caller: Frame, side: Side, depth: int) -> float:
    """Return the instructions of functions that `frame` calls in this kernel, and `caller` only in the other one."""
    moved = 0.0
    for key, child in frame.children.items():
        replacement = caller.children.get(key)
        if replacement is not None and replacement is not frame and _only_side(replacement) not in (None, side):
            moved += child.total.of(side)
        elif depth > 1:
            moved += _moved(child, caller, side, depth - 1)
    return moved


def _alike(frame: Frame, side: Side, sibling: Frame, sibling_side: Side) -> bool:
    """Return whether two frames call the same functions, each in its kernel."""
    common = frame.children.keys() & sibling.children.keys()
    return all(
        sum(caller.children[key].total.of(kernel) for key in common) >= ALIKE * _callee_instructions(caller, kernel) > 0
        for caller, kernel in ((frame, side), (sibling, sibling_side))
    )


def _callee_instructions(frame: Frame, side: Side) -> float:
    return sum(child.total.of(side) for child in frame.children.values())


def _only_side(frame: Frame) -> Side | None:
    """Return the only kernel that has this frame; None if both have it."""
    if frame.total.variant <= ABSENT * frame.total.baseline:
        return "baseline"
    return "variant" if frame.total.baseline <= ABSENT * frame.total.variant else None
