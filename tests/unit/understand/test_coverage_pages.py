"""Pages of coverage: what they show, and that no source can make them do anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel.recipe import Recipe
from kdyno.report.coverage_page import CONTEXT, SHORTEST_GAP, ShownLine, listing
from kdyno.understand.coverage.sources import NotATree, SourceChanged, SourceGone, SourceUnknown, Tree, find_tree
from tests.unit import specimen

LINE = ShownLine("f", (1_234_567,), "work 1,234,567 · 0")


def test_a_line_with_code_has_its_colour_its_counts_and_a_name_to_link_to() -> None:
    page = listing(["int a;", "\treturn 1;"], {2: LINE}, 1)
    without, with_code = page.split("\n")
    assert without == "     1\t\t\tint a;"
    assert with_code == (
        '<i class=f id=L2 title="work 1,234,567 · 0">     2       1,234,567  \treturn 1;</i>'  # a tab ends at column 32
    )


def test_text_of_a_source_is_escaped_and_steers_nothing() -> None:
    hostile = '</pre><script>alert("1")</script>\x1b[31m\u202e & \tx'
    page = listing([hostile, hostile], {1: ShownLine("n", (0,), '"><script>')}, 1)
    assert "<script" not in page and "\x1b" not in page and "\u202e" not in page
    assert page.count("&lt;script&gt;alert(&#34;1&#34;)") == 2
    assert 'title="&#34;&gt;&lt;script&gt;"' in page


def test_long_stretches_without_code_are_left_out_and_counted() -> None:
    text = [f"line {number}" for number in range(1, 301)]
    page = listing(text, {100: LINE, 110: LINE, 200: LINE}, 1)
    shown = [int(number) for number in re.findall(r"line (\d+)", page)]
    gaps = [int(number) for number in re.findall(r"<u> *(\d+) lines without code</u>", page)]
    assert shown == [*range(100 - CONTEXT, 111 + CONTEXT), *range(200 - CONTEXT, 201 + CONTEXT)]
    assert len(shown) + sum(gaps) == len(text) and len(gaps) == 3


def test_short_stretches_without_code_are_shown() -> None:
    text = [f"line {number}" for number in range(1, 2 * CONTEXT + SHORTEST_GAP)]
    page = listing(text, {1: LINE, len(text): LINE}, 1)
    assert "<u>" not in page and len(page.split("\n")) == len(text)


def test_a_file_that_lacks_lines_that_were_compiled_is_another_one(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_bytes(b"int a;\nint b;\n\xff")
    tree = Tree(tmp_path)
    assert tree.text("a.c", 2) == ["int a;", "int b;", "\ufffd"]
    with pytest.raises(SourceChanged) as caught:
        tree.text("a.c", 9)
    assert "it has 3 lines, but vmlinux has code of line 9" in str(caught.value)


@pytest.mark.parametrize("path", ["o/generated.h", "/etc/passwd", "../../etc/passwd", "missing.c", "folder"])
def test_what_is_no_file_of_the_tree_has_no_text(tmp_path: Path, path: str) -> None:
    (tmp_path / "folder").mkdir()
    assert Tree(tmp_path).text(path, 0) is None


def test_a_directory_with_none_of_the_files_is_no_tree(tmp_path: Path) -> None:
    (tmp_path / "a.c").touch()
    Tree(tmp_path).require_files(["a.c", "b.c"])
    with pytest.raises(NotATree):
        Tree(tmp_path / "empty").require_files(["a.c", "/b.c"])


def test_the_tree_is_the_one_that_was_named_or_the_image_s_own(tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    image = specimen.image("gcc-O2", Recipe())
    assert find_tree(None, tmp_path, state).root == tmp_path
    with pytest.raises(SourceUnknown):
        find_tree(None, None, state)
    with pytest.raises(SourceGone) as caught:
        find_tree(image, None, state)
    assert image.source.spec in str(caught.value)
    kind, _, value = image.source.identity.partition(":")
    tree = state.sources / f"{kind}-{value[:32]}"
    tree.mkdir()
    assert find_tree(image, None, state).root == tree
    with pytest.raises(SourceGone):
        find_tree(image.model_copy(update={"patches": ("ab" * 32,)}), None, state)
