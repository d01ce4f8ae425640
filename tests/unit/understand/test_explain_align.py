from __future__ import annotations

from kdyno.understand.explain.align import align
from kdyno.understand.explain.tree import Frame, merge_regions
from tests.unit.explain_specimen import Kernel, pair


def stacks(**instructions: float) -> Kernel:
    """`a_b_c=5`: c, called by b, called by a, executes 5 instructions of its own."""
    kernel = Kernel()
    for path, amount in instructions.items():
        kernel.stack(path.replace("_", ";"), amount)
    return kernel


def aligned(before: Kernel, after: Kernel) -> Frame:
    root = merge_regions(before.measured(), after.measured())
    total = root.total.baseline, root.total.variant
    align(root)
    assert (root.total.baseline, root.total.variant) == total
    return root


def children(frame: Frame) -> dict[str, tuple[float, float]]:
    return {child.name: (child.total.baseline, child.total.variant) for child in frame.sorted_children()}


def test_what_an_inlined_function_calls_is_compared_with_itself() -> None:
    root = aligned(stacks(a=10, a_b=20, a_b_c=100, a_b_d=50), stacks(a=25, a_c=100, a_d=51))
    a = root.child("a", 0)
    assert children(a) == {"c": (100, 100), "d": (50, 51)}
    assert (a.own.baseline, a.own.variant, a.absorbed) == (30, 25, {"b"})


def test_it_works_in_both_directions() -> None:
    root = aligned(stacks(a=25, a_c=100), stacks(a=10, a_b=20, a_b_c=90))
    assert children(root.child("a", 0)) == {"c": (100, 90)}


def test_functions_inlined_into_one_another_are_dissolved_together() -> None:
    root = aligned(stacks(a=10, a_b=20, a_b_c=5, a_b_c_d=100, a_b_c_d_e=7), stacks(a=30, a_d=100, a_d_e=7))
    a = root.child("a", 0)
    assert a.absorbed == {"b", "c"}
    assert children(a.child("d", 0)) == {"e": (7, 7)}


def test_of_two_functions_that_jump_to_one_another_either_may_be_left() -> None:
    root = aligned(stacks(a=10, a_b=20, a_b_x=50, a_b_y=9), stacks(a=10, a_c=30, a_c_x=50, a_c_y=9))
    [left] = root.child("a", 0).sorted_children()
    assert (left.name, left.absorbed) == ("c", {"b"})
    assert (left.total.baseline, left.total.variant) == (79, 89)
    assert children(left) == {"x": (50, 50), "y": (9, 9)}


def test_a_function_that_is_new_stays_new() -> None:
    root = aligned(stacks(a=10, a_b=20), stacks(a=10, a_b=20, a_n=40, a_n_m=60))
    assert children(root.child("a", 0)) == {"b": (20, 20), "n": (0, 100)}


def test_a_function_that_is_called_from_two_places_is_not_taken_for_inlined() -> None:
    both = {"a": 10, "a_c": 30}
    root = aligned(stacks(**both, a_b=20, a_b_c=100), stacks(**both))
    assert children(root.child("a", 0)) == {"b": (120, 0), "c": (30, 30)}


def test_leaves_that_are_inlined_stay_to_be_seen() -> None:
    before, after = pair()
    ksys_read = aligned(before, after).child("entry_SYSCALL_64", 3).child("ksys_read", 0)
    assert children(ksys_read) == {"fput": (96, 0), "vfs_read": (150, 200)}
