"""The stacks of two regions as one tree: every frame has the instructions of both kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kdyno.measure.guest.pmu_parts import STACK_CALL, STACK_INTERRUPT
from kdyno.profile.functions import plain_name
from kdyno.understand.explain.measured import MeasuredRegion

Side = Literal["baseline", "variant"]


@dataclass
class Amount:
    """Instructions per unit of work."""

    baseline: float = 0.0
    variant: float = 0.0

    @property
    def difference(self) -> float:
        return self.variant - self.baseline

    def of(self, side: Side) -> float:
        return self.baseline if side == "baseline" else self.variant

    def add(self, other: Amount) -> None:
        self.baseline += other.baseline
        self.variant += other.variant

    def add_to(self, side: Side, amount: float) -> None:
        if side == "baseline":
            self.baseline += amount
        else:
            self.variant += amount


@dataclass
class Frame:
    """A function called in one way from one stack."""

    name: str
    """The plain name: clones are folded into their function."""
    kind: int
    """0 call, 1 exception, 3 entry from user code."""
    names: set[str] = field(default_factory=set)
    """The symbols in the two kernels."""
    own: Amount = field(default_factory=Amount)
    total: Amount = field(default_factory=Amount)
    """The instructions with all callees."""
    children: dict[tuple[str, int], Frame] = field(default_factory=dict)

    absorbed: set[str] = field(default_factory=set)
    """Plain names of functions whose code counts for this one, since one of the kernels has them inlined."""

    def child(self, name: str, kind: int) -> Frame:
        return self.children.setdefault((name, kind), Frame(name, kind))

    def absorb(self, callee: Frame) -> None:
        """Take over the callee's own code and its callees. The total stays the same, since it includes them."""
        self.absorbed |= {callee.name, *callee.absorbed}
        self.own.add(callee.own)
        waiting = [(self, child) for child in callee.children.values()]
        while waiting:  # no recursion, see _sum_up
            frame, child = waiting.pop()
            existing = frame.children.setdefault((child.name, child.kind), child)
            if existing is not child:
                existing.names |= child.names
                existing.absorbed |= child.absorbed
                existing.own.add(child.own)
                existing.total.add(child.total)
                waiting += [(existing, grandchild) for grandchild in child.children.values()]

    def sorted_children(self) -> list[Frame]:
        """Return the children by name, so that two graphs of one tree have the same order."""
        return [self.children[key] for key in sorted(self.children)]


def merge_regions(baseline: MeasuredRegion, variant: MeasuredRegion) -> Frame:
    """Merge both regions to one tree, whose root represents the region. Interrupts and their callees are left out."""
    root = Frame("all", STACK_CALL)
    sides: tuple[tuple[Side, MeasuredRegion], ...] = (("baseline", baseline), ("variant", variant))
    for side, region in sides:
        _add_stacks(root, side, region)
    _sum_up(root)
    return root


def _add_stacks(root: Frame, side: Side, region: MeasuredRegion) -> None:
    placed: list[Frame | None] = [root]
    for node in region.region.stacks:
        parent = placed[node.parent]
        if parent is None or node.kind == STACK_INTERRUPT:
            placed.append(None)
            continue
        name = region.record.functions[node.function].name
        frame = parent.child(plain_name(name), node.kind)
        frame.names.add(name)
        frame.own.add_to(side, node.instructions / region.work)
        placed.append(frame)


def _sum_up(root: Frame) -> None:
    """Compute the totals without recursion: the depth of the tree depends on the guest."""
    order = [root]
    for frame in order:  # grows during the loop: parents come before their children
        order.extend(frame.children.values())
        frame.total = Amount(frame.own.baseline, frame.own.variant)
    for frame in reversed(order):
        for child in frame.children.values():
            frame.total.add(child.total)
