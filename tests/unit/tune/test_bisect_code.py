"""Tells whether two kernels have the same code: by toy kernels, and by files that are not kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from kdyno.tune.bisect.code import code_digest
from tests.unit.kernel_toy import built, silent, toy_tree


def digest_with(tree: Path, state: State, line: str) -> str | None:
    """The digest of the toy with one more line in a source file."""
    with (tree / "fs/open.c").open("a", encoding="utf-8") as source:
        source.write(f"{line}\n")
    return code_digest(built(Recipe(), fetch(str(tree), state, silent), state).vmlinux)


def test_a_comment_leaves_the_digest_and_code_and_data_change_it(tmp_path: Path, state: State) -> None:
    tree = toy_tree(tmp_path)
    first = digest_with(tree, state, "")
    assert first is not None
    assert digest_with(tree, state, "/* a comment\n * of two lines */") == first
    with_data = digest_with(tree, state, "int planted_data = 1;")
    with_code = digest_with(tree, state, "int planted(void) { return 1; }")
    assert len({first, with_data, with_code}) == 3


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(60), b"text" * 100])
def test_a_file_that_is_not_a_kernel_has_no_digest(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "vmlinux"
    path.write_bytes(content)
    assert code_digest(path) is None
    assert code_digest(tmp_path / "nowhere") is None
