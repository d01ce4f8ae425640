from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from kdyno.measure.guest.pmu_parts import StackNode
from kdyno.understand.explain.layout import DEEPEST, boxes
from kdyno.understand.explain.svg import Caption, flame_graph
from kdyno.understand.explain.tree import Frame, merge_regions
from tests.unit.explain_specimen import Kernel, pair

CAPTION = Caption("lat_syscall.read", "gcc-O2", "gcc-O3", "op")
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</title><script>alert(1)</script>"&\x1b[2J\x00'


@pytest.fixture
def tree() -> Frame:
    before, after = pair()
    return merge_regions(before.measured(), after.measured())


def frames(svg: str) -> dict[str, list[ElementTree.Element]]:
    """Frames by the first line of their title, the variant's first."""
    frames_by_name: dict[str, list[ElementTree.Element]] = {}
    for frame in ElementTree.fromstring(svg).iter(f"{SVG}svg"):
        if (title := frame.find(f"{SVG}title")) is not None:
            frames_by_name.setdefault((title.text or "").split("\n", 1)[0], []).append(frame)
    return frames_by_name


def fill(frame: ElementTree.Element) -> tuple[int, int, int]:
    rectangle = frame.find(f"{SVG}rect")
    assert rectangle is not None
    red, green, blue = re.findall("..", rectangle.attrib["fill"][1:])
    return int(red, 16), int(green, 16), int(blue, 16)


def test_totals_are_those_of_all_callees_without_interrupts(tree: Frame) -> None:
    assert (tree.total.baseline, tree.total.variant) == (346, 360)


def test_clones_are_one_frame(tree: Frame) -> None:
    vfs_read = tree.child("entry_SYSCALL_64", 3).child("ksys_read", 0).child("vfs_read", 0)
    assert sorted(child.name for child in vfs_read.sorted_children()) == ["copy_out", "take_lock"]
    assert vfs_read.child("copy_out", 0).names == {"copy_out", "copy_out.isra.0"}


def test_widths_are_instructions_on_one_scale(tree: Frame) -> None:
    variant, baseline = frames(flame_graph(tree, CAPTION))["all"]
    assert float(baseline.attrib["width"]) / float(variant.attrib["width"]) == pytest.approx(346 / 360, rel=1e-3)


def test_what_grew_is_red_and_what_shrank_is_blue(tree: Frame) -> None:
    frames_by_name = frames(flame_graph(tree, CAPTION))
    red, _, blue = fill(frames_by_name["take_lock"][0])
    assert red > blue + 50
    red, _, blue = fill(frames_by_name["fput"][0])
    assert blue > red + 50
    assert fill(frames_by_name["exception: asm_exc_page_fault"][0]) == (238, 236, 231)


def test_frames_of_one_kernel_alone_are_outlined(tree: Frame) -> None:
    frames_by_name = frames(flame_graph(tree, CAPTION))
    assert {
        name for name, elements in frames_by_name.items() if "dasharray" in ElementTree.tostring(elements[0]).decode()
    } == {
        "take_lock",
        "fput",
    }
    assert len(frames_by_name["vfs_read"]) == 2


def test_a_title_has_both_values(tree: Frame) -> None:
    title = frames(flame_graph(tree, CAPTION))["vfs_read"][0].find(f"{SVG}title")
    assert title is not None
    assert title.text == (
        "vfs_read\ninstructions per op, gcc-O2 → gcc-O3\n"
        "with what it calls: 150 → 200 (+50, +33.3 %)\nits own code: 100 → 100 (0, 0 %)"
    )


def test_no_name_can_leave_its_place() -> None:
    kernel = Kernel().function(HOSTILE, 100).stack(HOSTILE, 100)
    hostile = Caption(HOSTILE, HOSTILE, HOSTILE, "op")
    svg = flame_graph(merge_regions(Kernel().measured(), kernel.measured()), hostile)
    tags = {element.tag for element in ElementTree.fromstring(svg).iter()}
    assert tags == {f"{SVG}{name}" for name in ("svg", "rect", "text", "title")}
    assert "\x1b" not in svg
    assert "<script" not in svg


def test_the_same_tree_is_the_same_picture() -> None:
    one, two = (merge_regions(*(kernel.measured() for kernel in pair())) for _ in range(2))
    assert flame_graph(one, CAPTION) == flame_graph(two, CAPTION)


def test_text_is_cut_to_its_frame() -> None:
    long = "a_function_with_a_very_long_name"
    kernel = Kernel().function("f", 100).function(long, 10).stack("f", 90).stack(f"f;{long}", 10)
    [frame] = frames(flame_graph(merge_regions(Kernel().measured(), kernel.measured()), CAPTION))[long]
    text = frame.find(f"{SVG}text")
    assert text is not None
    assert text.text is not None
    assert text.text.endswith("…")
    assert len(text.text) * 6.7 < float(frame.attrib["width"])


def test_empty_stacks_make_a_picture_that_says_so() -> None:
    svg = flame_graph(merge_regions(Kernel().measured(), Kernel().measured()), CAPTION)
    assert svg.count("no stacks on record") == 2
    assert frames(svg) == {}


def test_frames_too_small_to_see_are_counted() -> None:
    kernel = Kernel(work=1).function("f", 1).stack("f", 100_000)
    for number in range(50):
        kernel.function(f"g{number}", 1).stack(f"f;g{number}", 1)
    svg = flame_graph(merge_regions(Kernel().measured(), kernel.measured()), CAPTION)
    assert "; 50 frames too small to show" in svg


def test_a_stack_as_deep_as_a_guest_likes_is_cut_off() -> None:
    kernel = Kernel().function("f", 1)
    kernel.stacks = [StackNode(depth, 0, 0, 1000) for depth in range(20_000)]
    root = merge_regions(kernel.measured(), kernel.measured())
    placed, left_out = boxes(root, "variant", 0.0)
    assert (len(placed), left_out) == (DEEPEST, 1)
    assert root.total.variant == 20_000
