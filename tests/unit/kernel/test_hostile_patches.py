"""Patches of strangers: they read and change files of the tree, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel import patches
from kdyno.kernel.patch_names import stray, why_not_binary
from kdyno.kernel.patches import patched, read_patch
from kdyno.kernel.source import KernelSource
from tests.unit.growth import repeated, too_steep
from tests.unit.kernel.test_kernel_patches import GOOD
from tests.unit.kernel_toy import git, silent

COPY = """\
diff --git a/fs/open.c b/fs/secret.c
similarity index 100%
copy from {}
copy to fs/secret.c
"""
NO_SOURCE = """\
diff --git a/x b/y
copy to fs/secret.c
--- a/{}
+++ b/fs/secret.c
"""
LINK = """\
diff --git a/fs/link b/fs/link
new file mode 120000
--- /dev/null
+++ b/fs/link
@@ -0,0 +1 @@
+{}
\\ No newline at end of file
"""


def write(folder: Path, name: str, text: str) -> patches.Patch:
    (folder / name).write_text(text)
    return read_patch(folder / name)


def test_a_patch_cant_copy_a_file_from_outside_of_the_tree_into_it(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    secret = state.sources / "secret"
    secret.write_text("a secret\n")
    for name in ("../secret", str(secret), '"\\056\\056/secret"', "fs/../../secret"):
        with pytest.raises(patches.PatchUnfit, match="lies outside of the kernel tree"):
            patched(source, [write(tmp_path, "copy.patch", COPY.format(name))], state, silent)


@pytest.mark.parametrize(
    "text",
    [
        NO_SOURCE.format("../../secret"),
        NO_SOURCE.format("/etc/passwd"),
        COPY.format("x").replace("copy", "rename").replace("rename to fs", "rename to ../fs"),
        COPY.format("x").replace("copy from", "rename old").replace(" x", " ../x"),
        "diff --git a/../x b/../x\nold mode 100644\nnew mode 100755\n",
        'diff --git "a/\\056./x" "b/..\\057x"\nold mode 100644\nnew mode 100755\n',
        "diff --git a/x /etc/passwd\nold mode 100644\nnew mode 100755\n",
        "--- a/../../etc/passwd\n+++ b/fs/open.c\n@@ -1 +1 @@\n-a\n+b\n",
        "--- a/fs/open.c\t2024-01-01\n+++ ../fs/open.c\t2024-01-01\n@@ -1 +1 @@\n-a\n+b\n",
        # What looks like a hunk, to hide the header behind it.
        f"+++ nothing\n@@ -1,99 +1,99 @@\n{NO_SOURCE.format('../secret')}",
        f"--- a/x\n+++ b/x\n@@ -1,99 +1,99 @@\n a\n{NO_SOURCE.format('../secret')}",
    ],
)
def test_no_header_may_lead_out_of_the_tree(text: str) -> None:
    assert stray(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "diff --git a/x..y b/..x/y\n--- a/x..y\n+++ b/..x/y\n",
        "--- /dev/null\n+++ b/fs/new.c\t2024-01-01 00:00:00.000000000 +0100\n",
        '--- "a/fs/o\\"pen.c"\n+++ "b/fs/\\303\\274.c"\n',
        # Comments of Lua and SQL: lines of files that begin with `--`.
        "--- a/x.lua\n+++ b/x.lua\n@@ -1,2 +1,2 @@\n--- see ../fs/open.c\n+-- see /fs/open.c\n context\n",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9,2 @@\n a\n+++ ../x\n-- \n2.39\n",
    ],
)
def test_what_only_looks_like_a_way_out_is_fine(text: str) -> None:
    assert stray(text.encode()) == ""


@pytest.mark.parametrize("target", ["/etc", "../../outside", "../../../outside", "a/../../../outside"])
@pytest.mark.parametrize("name", ["fs/link", '"{}/fs/l\\377"'])
def test_a_patch_cant_make_a_link_for_the_next_one_to_read_through(
    tmp_path: Path, source: KernelSource, state: State, target: str, name: str
) -> None:
    (state.sources / "outside").mkdir()
    (state.sources / "outside/secret").write_text("a secret\n")
    text = LINK.format(target)
    if name.startswith('"'):
        text = text.replace("a/fs/link", name.format("a")).replace("b/fs/link", name.format("b"))
    series = [write(tmp_path, "link.patch", text), write(tmp_path, "copy.patch", COPY.format("fs/link/secret"))]
    with pytest.raises(patches.PatchUnfit, match=r"link\.patch can't be applied: with it .* outside of the tree"):
        patched(source, series, state, silent)
    assert not list(state.sources.glob("*patched*"))


def test_a_link_that_is_moved_so_that_it_leads_out_is_refused(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    move = "diff --git a/fs/link b/link\nsimilarity index 100%\nrename from fs/link\nrename to link\n"
    series = [write(tmp_path, "link.patch", LINK.format("../lib")), write(tmp_path, "move.patch", move)]
    with pytest.raises(patches.PatchUnfit, match=r"move\.patch can't be applied: with it .* outside of the tree"):
        patched(source, series, state, silent)


def test_a_link_within_the_tree_is_fine(tmp_path: Path, source: KernelSource, state: State) -> None:
    tree = patched(source, [write(tmp_path, "link.patch", LINK.format("../lib/crc32.c"))], state, silent).tree
    assert (tree / "fs/link").readlink() == Path("../lib/crc32.c")


def test_a_binary_part_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    binary = "diff --git a/x b/x\nnew file mode 100644\nindex 0..1\nGIT binary patch\n{}\nHcmV?d00001\n\nliteral 0\n"
    for part in ("literal 99999999999", "literal 9" + "9" * 5000, "literal -1", "delta 10"):
        with pytest.raises(patches.PatchUnfit, match="binary"):
            write(tmp_path, "bomb.patch", binary.format(part))
    assert why_not_binary(binary.format("literal 100").encode(), 1000) == ""
    assert why_not_binary(b"the delta is large:\ndelta 99999999999\n", 1000) == ""


def test_a_pipe_a_device_and_a_huge_file_are_no_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "MOST_BYTES", 1000)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", patches.MOST_BYTES + 1)
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path / "huge"):
        with pytest.raises(patches.PatchMissing):
            read_patch(path)


def test_a_tree_that_brings_a_repository_along_runs_nothing_when_it_is_patched(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    """A tarball may hold a .git, and git would look there for filters."""
    git(source.tree, "init", "-q")
    mark = tmp_path / "ran"
    (source.tree / ".git/config").write_text(
        f'[filter "x"]\n\tclean = touch {mark}; cat\n\tsmudge = touch {mark}; cat\n[core]\n\tfsmonitor = touch {mark}\n'
    )
    (source.tree / ".gitattributes").write_text("* filter=x\n")
    tree = patched(source, [write(tmp_path, "a.patch", GOOD)], state, silent).tree
    assert "flags & 7" in (tree / "fs/open.c").read_text()
    assert not mark.exists()


def test_looking_at_a_patch_takes_time_in_proportion_to_its_size() -> None:
    def hunk(size: int) -> str:
        lines = size // 9
        return f"--- a/x\n+++ b/x\n@@ -1,{lines} +0,0 @@\n" + "--- ../x\n" * lines

    def look(text: str) -> None:
        stray(text.encode())

    for text in (
        hunk,
        repeated("", "--- ../x\n+++ x\n@@ -1 +1 @@\n", ""),
        repeated("--- a", "/.", ""),
        repeated("--- ", " ", ""),
    ):
        assert too_steep(look, text, 50_000) == ""
