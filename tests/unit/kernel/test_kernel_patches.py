"""Patches: a private copy gets them, the source never does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel import patches
from kdyno.kernel.patches import patched, read_patch
from kdyno.kernel.source import KernelSource, fetch
from tests.unit.kernel_toy import git, silent, snapshot, toy_tree

GOOD = """\
Subject: let more files open

--- a/fs/open.c
+++ b/fs/open.c
@@ -2,5 +2,5 @@

 static int allowed(int flags)
 {
-\treturn (flags & 3) != 3;
+\treturn (flags & 7) != 7;
 }
"""
SECOND = GOOD.replace("(flags & 3) != 3", "(flags & 7) != 7").replace("+\treturn (flags & 7) != 7", "+\treturn 1")
NEW_FILE = """\
diff --git a/fs/close.c b/fs/close.c
new file mode 100644
--- /dev/null
+++ b/fs/close.c
@@ -0,0 +1 @@
+int nothing;
"""
FAILING = """\
--- a/fs/open.c
+++ b/fs/open.c
@@ -27,5 +27,5 @@

 int sys_close(int fd)
 {
-\treturn fd < 0 ? -5 : 0;
+\treturn 0;
 }
"""


def write(folder: Path, name: str, text: str) -> patches.Patch:
    (folder / name).write_text(text)
    return read_patch(folder / name)


def test_without_patches_the_tree_is_the_source_itself(source: KernelSource, state: State) -> None:
    assert patched(source, [], state, silent).tree == source.tree


def test_a_patch_goes_into_a_copy_and_leaves_the_source_as_it_was(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    before = snapshot(source.tree)
    result = patched(source, [write(tmp_path, "a.patch", GOOD), write(tmp_path, "b.patch", NEW_FILE)], state, silent)
    assert "flags & 7" in (result.tree / "fs/open.c").read_text()
    assert (result.tree / "fs/close.c").read_text() == "int nothing;\n"
    assert snapshot(source.tree) == before
    assert not (source.tree / "fs/close.c").exists()


def test_git_apply_replaces_hard_linked_files_and_shares_the_others(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    result = patched(source, [write(tmp_path, "a.patch", GOOD)], state, silent)
    assert not (result.tree / "fs/open.c").samefile(source.tree / "fs/open.c")
    assert (result.tree / "lib/crc32.c").samefile(source.tree / "lib/crc32.c")


def test_patches_are_applied_in_order(tmp_path: Path, source: KernelSource, state: State) -> None:
    series = [write(tmp_path, "a.patch", GOOD), write(tmp_path, "b.patch", SECOND)]
    assert "return 1;" in (patched(source, series, state, silent).tree / "fs/open.c").read_text()
    with pytest.raises(patches.PatchFailed):
        patched(source, series[::-1], state, silent)


def test_a_patched_tree_is_kept(tmp_path: Path, source: KernelSource, state: State) -> None:
    series = [write(tmp_path, "a.patch", GOOD)]
    first = patched(source, series, state, silent)
    messages: list[str] = []
    assert patched(source, series, state, messages.append) == first
    assert messages == []


def test_a_patch_that_is_in_already_is_noted_each_time(tmp_path: Path, source: KernelSource, state: State) -> None:
    twice = [write(tmp_path, "a.patch", GOOD), write(tmp_path, "same.patch", GOOD)]
    for _ in range(2):
        notes = patched(source, twice, state, silent).notes
        assert notes == (f"same.patch is already applied in {source.identity.spec}",)


def test_a_failing_hunk_is_shown_with_its_file_and_line(tmp_path: Path, source: KernelSource, state: State) -> None:
    before = snapshot(source.tree)
    with pytest.raises(patches.PatchFailed) as raised:
        patched(source, [write(tmp_path, "bad.patch", FAILING)], state, silent)
    message = str(raised.value)
    assert "bad.patch doesn't apply" in message
    assert "the hunk at fs/open.c:27 doesn't fit" in message
    assert "-\treturn fd < 0 ? -5 : 0;" in message
    assert snapshot(source.tree) == before
    assert not list(state.sources.glob("*patched*"))


def test_a_patch_for_a_file_that_is_not_there_is_said(tmp_path: Path, source: KernelSource, state: State) -> None:
    with pytest.raises(patches.PatchFailed, match=r"mm/slub\.c: No such file"):
        patched(source, [write(tmp_path, "x.patch", GOOD.replace("fs/open.c", "mm/slub.c"))], state, silent)


def test_a_patch_cant_write_outside_of_the_tree(tmp_path: Path, source: KernelSource, state: State) -> None:
    escape = NEW_FILE.replace("fs/close.c", "../../escaped.c")
    with pytest.raises(patches.PatchUnfit, match="lies outside of the kernel tree"):
        patched(source, [write(tmp_path, "x.patch", escape)], state, silent)


def test_missing_and_empty_patches_are_said(tmp_path: Path) -> None:
    with pytest.raises(patches.PatchMissing, match="No such file"):
        read_patch(tmp_path / "none.patch")
    with pytest.raises(patches.PatchEmpty):
        write(tmp_path, "empty.patch", "Subject: nothing\n")


def test_a_repository_around_the_state_directory_has_no_say(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    state = State(tmp_path / "state")
    source = fetch(f"dir:{toy_tree(tmp_path)}", state, silent)
    result = patched(source, [write(tmp_path, "a.patch", GOOD)], state, silent)
    assert "flags & 7" in (result.tree / "fs/open.c").read_text()
