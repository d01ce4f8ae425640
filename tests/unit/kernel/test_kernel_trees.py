"""Kernel trees from strangers: nothing in them leads out, and nothing but files, directories and links is kept."""

from __future__ import annotations

import io
import os
import signal
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdyno.base.errors import KdynoError
from kdyno.base.state import State
from kdyno.kernel import build_directory, source, source_trees
from kdyno.kernel.patches import patched, read_patches
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from kdyno.kernel.source_trees import made_once, require_plain
from tests.at_once import at_once
from tests.unit.kernel_toy import built, commit, silent, toy_repository, toy_source, toy_tree

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may make devices")


@pytest.fixture(autouse=True)
def _nothing_waits() -> Iterator[None]:
    with at_once():
        yield


def packed(folder: Path, *members: tarfile.TarInfo, content: bytes = b"") -> Path:
    """A tarball of the toy kernel with a few more members."""
    path = folder / "linux.tar"
    with tarfile.open(path, "w") as tar:
        tar.add(toy_tree(folder), "linux")
        for member in members:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content))
    return path


def member(name: str, kind: bytes, mode: int = 0o644, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, mode, link
    info.devmajor, info.devminor = 1, 3
    return info


def modes(tree: Path) -> dict[str, str]:
    return {str(path.relative_to(tree)): stat.filemode(path.lstat().st_mode) for path in (tree, *tree.rglob("*"))}


def test_what_is_unpacked_runs_as_nobody_else_and_is_written_by_nobody_else(tmp_path: Path, state: State) -> None:
    path = packed(
        tmp_path,
        member("linux/bin", tarfile.DIRTYPE, 0o7777),
        member("linux/bin/su", tarfile.REGTYPE, 0o6777),
        member("linux/shut", tarfile.DIRTYPE, 0o000),
        member("linux/shut/file", tarfile.REGTYPE, 0o000),
        member("linux/", tarfile.DIRTYPE, 0o1777),
    )
    mask = os.umask(0)
    try:
        mode_of = modes(fetch(str(path), state, silent).tree)
    finally:
        os.umask(mask)
    assert (mode_of["bin"], mode_of["bin/su"], mode_of["."]) == ("drwxr-xr-x", "-rwxr-xr-x", "drwxr-xr-x")
    assert (mode_of["shut"], mode_of["shut/file"]) == ("drwx------", "-rw-------")
    assert not [name for name, mode in mode_of.items() if set("sStT") & set(mode) or mode[5] == "w" or mode[8] == "w"]


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (tarfile.FIFOTYPE, "a named pipe"),
        pytest.param(tarfile.CHRTYPE, "a character device", marks=needs_root),
        pytest.param(tarfile.BLKTYPE, "a block device", marks=needs_root),
    ],
)
@pytest.mark.parametrize("name", ["fs/null", "Makefile"])
def test_a_tarball_with_a_device_or_a_pipe_is_refused(
    tmp_path: Path, state: State, name: str, kind: bytes, what: str
) -> None:
    path = packed(tmp_path, member(f"linux/{name}", kind, 0o666))
    with pytest.raises(KdynoError, match=f"holds {name}, which is {what}") as caught:
        fetch(str(path), state, silent)
    assert caught.value.advice
    assert list(state.sources.iterdir()) == []


def test_nobody_else_reaches_what_is_being_unpacked(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(partial: Path, _spec: str) -> str:
        modes_then.append(partial.stat().st_mode & 0o777)
        return "6.12"

    modes_then: list[int] = []
    monkeypatch.setattr(source, "kernel_version", look)
    path = packed(tmp_path, member("./", tarfile.DIRTYPE, 0o777))
    tree = fetch(str(path), state, silent).tree
    assert modes_then[0] == 0o700
    assert tree.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../victim", "fs/../../victim"])
def test_a_hard_link_does_not_lead_out_of_a_tarball(tmp_path: Path, state: State, target: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = packed(tmp_path, member("linux/hard", tarfile.LNKTYPE, link=target))
    with pytest.raises(KdynoError, match="can't unpack"):
        fetch(str(path), state, silent)
    assert victim.stat().st_nlink == 1
    assert list(state.sources.iterdir()) == []


LEADING_OUT = [
    "/etc/passwd",
    "/nowhere/at/all",
    "../victim",
    "fs/../../victim",
    "deep/up/../victim",
    "fs/none/../../..",
]
LEADING_IN = ["fs/open.c", "./fs/../fs", "nowhere", "deep/up/fs", "fs/none/../..", "circle", "."]


def tree_with_link(folder: Path, target: str) -> Path:
    """The toy kernel with the link `deep/link`, and other links on the way; all of them stay inside by themselves."""
    tree = toy_repository(folder)
    (tree / "deep").mkdir()
    (tree / "deep" / "up").symlink_to("..")
    (tree / "deep" / "keep").touch()
    (tree / "circle").symlink_to("circle")
    (tree / "link").symlink_to(target)
    return tree


def named(kind: str, tree: Path) -> str:
    """The tree as a source of one kind."""
    if kind == "git":
        commit(tree, "a link")
        return f"git:{tree}"
    if kind == "tarball":
        subprocess.run(
            ["tar", "-cf", tree.parent / "linux.tar", "-C", tree.parent, "--exclude=.git", "linux"], check=True
        )
        return str(tree.parent / "linux.tar")
    return str(tree)


@pytest.mark.parametrize("target", LEADING_OUT)
@pytest.mark.parametrize("kind", ["directory", "tarball", "git"])
def test_a_tree_with_a_link_that_leads_out_of_it_is_refused(
    tmp_path: Path, state: State, kind: str, target: str
) -> None:
    spec = named(kind, tree_with_link(tmp_path, target))
    with pytest.raises(KdynoError, match=f"holds link, a link to {target}, which is outside") as caught:
        fetch(spec, state, silent)
    assert caught.value.advice
    assert list(state.sources.iterdir()) == []


@pytest.mark.parametrize("target", LEADING_IN)
def test_a_link_that_stays_in_its_tree_is_kept(tmp_path: Path, state: State, target: str) -> None:
    tree = fetch(str(tree_with_link(tmp_path, target)), state, silent).tree
    assert (tree / "link").readlink() == Path(target)


def test_a_patch_can_not_bring_a_link_that_leads_out_of_the_tree(tmp_path: Path, state: State) -> None:
    patch = tmp_path / "evil.patch"
    patch.write_text(
        "diff --git a/link b/link\nnew file mode 120000\nindex 0000000..1\n--- /dev/null\n+++ b/link\n"
        "@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n"
    )
    kernel = toy_source(tmp_path, state)
    with pytest.raises(KdynoError, match=r"link.*/etc/passwd"):
        patched(kernel, read_patches([str(patch)]), state, silent)
    assert [path.name for path in state.sources.iterdir() if path.is_dir()] == [kernel.tree.name]


@pytest.mark.parametrize("name", sorted(build_directory.OWN))
def test_a_tree_can_not_bring_what_kdyno_makes_beside_the_objects(tmp_path: Path, state: State, name: str) -> None:
    tree = toy_tree(tmp_path)
    (tree / name).symlink_to("fs/victim")
    kernel = fetch(str(tree), state, silent)
    with pytest.raises(KdynoError, match=f"holds {name} .*which kdyno needs"):
        built(Recipe(), kernel, state)
    assert not (kernel.tree / "fs" / "victim").exists()
    assert list(state.builds.iterdir()) == []


def test_all_that_kdyno_makes_beside_the_objects_is_known(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: set[str] = set()
    remove = source_trees.remove_tree

    def look(path: Path) -> None:
        if path.is_dir():
            names.update(entry.name for entry in path.iterdir())
        remove(path)

    monkeypatch.setattr("kdyno.kernel.make.remove_tree", look)
    kernel = toy_source(tmp_path, state)
    built(Recipe(layout_seed=1), kernel, state)
    made = names - {entry.name for entry in kernel.tree.iterdir()}
    assert made and made <= build_directory.OWN


KILLED = """
import os, signal, sys
from pathlib import Path
from kdyno.kernel import unpack
from kdyno.base.state import State
unpack.made_once = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)  # copied, not yet in place
unpack.directory(Path(sys.argv[1]), State(Path(sys.argv[2])), print)
"""


def test_what_a_killed_kdyno_left_of_a_copy_is_removed_by_one_that_makes_another_tree(
    tmp_path: Path, state: State
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, toy_tree(tmp_path / "one"), state.root], check=False, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL
    digits = "1234" * 8, "5678" * 8
    unpacking, in_use = (state.sources / f".tarball-{key}.partial" for key in digits)
    unpacking.mkdir()
    in_use.mkdir()
    left = sorted(path.name for path in state.sources.iterdir())
    assert len(left) == 3 and left[0].startswith(".copy-")
    with state.lock(f"source-tarball-{digits[1]}"):
        kernel = fetch(str(toy_tree(tmp_path / "two")), state, silent)
    assert sorted(state.sources.iterdir()) == sorted([in_use, kernel.tree])


def test_a_tree_that_is_there_is_not_looked_at_again(state: State) -> None:
    tree = state.sources / "tree-1"
    made_once(tree, lambda partial: (partial / "file").touch(), state, silent)
    (tree / "link").symlink_to("/")
    assert made_once(tree, lambda _: pytest.fail("again"), state, silent) == tree


def test_of_links_that_multiply_no_more_are_followed_than_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = 400
    (tmp_path / "l0").symlink_to(".")
    for number in range(1, links):
        (tmp_path / f"l{number}").symlink_to(f"l{number - 1}/l{number - 1}")
    followed, readlink = 0, Path.readlink

    def follow(path: Path) -> Path:
        nonlocal followed
        followed += 1
        assert followed <= links * (source_trees.MOST_LINKS + 1)
        return readlink(path)

    monkeypatch.setattr(Path, "readlink", follow)
    require_plain(tmp_path)
    assert followed > links
