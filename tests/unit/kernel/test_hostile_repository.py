"""Repositories of strangers: their configuration, attributes and index name programs and files, and none is used."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest

from kdyno.base import git
from kdyno.base.state import State
from kdyno.kernel import unpack
from kdyno.kernel.march.patch import commit as commit_patch
from kdyno.kernel.source import fetch
from tests.unit import kernel_toy
from tests.unit.kernel_toy import commit, silent, toy_repository

HOOKS = ("post-index-change", "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-auto-gc", "post-checkout")


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A file that is there as soon as anything was run."""
    return tmp_path / "ran"


def program(folder: Path, mark: Path) -> Path:
    path = folder / "program"
    path.write_text(f'#!/bin/sh\necho "$0 $*" >> {mark}\ncat\n')
    path.chmod(0o755)
    return path


def hostile(tmp_path: Path, mark: Path) -> Path:
    """A repository that names a program wherever git may be told to run one."""
    tree = toy_repository(tmp_path)
    (tree / ".gitattributes").write_text("* filter=x diff=x merge=x export-subst ident\nnet/** export-ignore\n")
    (tree / "fs/version.c").write_text("/* $Format:%H %G?$ $Id$ */\n")
    commit(tree, "attributes")
    run = program(tmp_path, mark)
    (tmp_path / "included").write_text(f'[filter "x"]\n\tprocess = {run}\n\trequired\n')
    with (tree / ".git/config").open("a") as config:
        config.write(f"""
[include]
    path = {tmp_path}/included
[core]
    fsmonitor = {run}
    hooksPath = {tmp_path}/hooks
    sshCommand = {run}
    gitProxy = {run}
    pager = {run}
    editor = {run}
    askPass = {run}
[filter "x"]
    clean = {run}
    smudge = {run}
[diff "x"]
    textconv = {run}
    command = {run}
[merge "x"]
    driver = {run} %A
[diff]
    external = {run}
[gpg]
    program = {run}
[log]
    showSignature = true
[commit]
    gpgSign = true
[am]
    threeWay = true
[tar]
    umask = 0777
[tar "tar"]
    command = {run}
[gc]
    auto = 1
    recentObjectsHook = {run}
[credential]
    helper = {run}
[alias]
    ls-files = !{run}
    rev-parse = !{run}
    archive = !{run}
[protocol]
    allow = always
[remote "origin"]
    url = ext::{run}
    promisor = true
    uploadpack = {run}
[extensions]
    partialClone = origin
""")
    for folder in (tmp_path / "hooks", tree / ".git/hooks"):
        folder.mkdir(exist_ok=True)
        for hook in HOOKS:
            (folder / hook).write_text(run.read_text())
            (folder / hook).chmod(0o755)
    mark.unlink(missing_ok=True)
    return tree


def test_the_work_tree_of_a_stranger_runs_nothing(tmp_path: Path, state: State, mark: Path) -> None:
    tree = hostile(tmp_path, mark)
    assert fetch(str(tree), state, silent).identity.version == "6.12.1-fake"
    assert not mark.exists(), mark.read_text()


def test_a_commit_of_a_stranger_runs_nothing_and_comes_out_as_it_was_committed(
    tmp_path: Path, state: State, mark: Path
) -> None:
    tree = hostile(tmp_path, mark)
    head = git.output(tree, "rev-parse", "HEAD").strip()
    source = fetch(f"git:{tree}", state, silent)
    assert not mark.exists(), mark.read_text()
    assert source.identity.identity == f"git:{head}"
    assert (source.tree / "fs/version.c").read_text() == "/* $Format:%H %G?$ $Id$ */\n"
    assert (source.tree / "net/socket.c").is_file()
    assert (source.tree / "Makefile").stat().st_mode & 0o444 == 0o444


def test_an_object_that_a_partial_clone_lacks_is_not_fetched(tmp_path: Path, state: State, mark: Path) -> None:
    tree = hostile(tmp_path, mark)
    blob = git.output(tree, "rev-parse", "HEAD:fs/open.c").strip()
    (tree / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(unpack.ArchiveFailed, match="git archive failed"):
        fetch(f"git:{tree}", state, silent)
    assert not mark.exists(), mark.read_text()


def test_a_commit_that_is_not_there_is_not_fetched(tmp_path: Path, state: State, mark: Path) -> None:
    tree = hostile(tmp_path, mark)
    with pytest.raises(Exception, match="no revision"):
        fetch(f"git:{tree}#{'1' * 40}", state, silent)
    assert not mark.exists(), mark.read_text()


def test_a_repository_of_sha256_is_taken_too(tmp_path: Path, state: State) -> None:
    tree = kernel_toy.toy_tree(tmp_path)
    kernel_toy.git(tree, "init", "-q", "--object-format=sha256")
    head = commit(tree, "the toy")
    assert len(head) == 64
    assert fetch(f"git:{tree}", state, silent).identity.identity == f"git:{head}"


def test_a_work_tree_beside_its_repository_is_taken_too(tmp_path: Path, state: State) -> None:
    tree = toy_repository(tmp_path)
    kernel_toy.git(tree, "worktree", "add", "-q", str(tmp_path / "beside"))
    assert (fetch(f"git:{tmp_path}/beside", state, silent).tree / "fs/open.c").is_file()
    assert (fetch(f"{tmp_path}/beside", state, silent).tree / "fs/open.c").is_file()


def test_an_index_that_names_files_outside_or_behind_a_link_brings_none_of_them(tmp_path: Path, state: State) -> None:
    tree = toy_repository(tmp_path)
    (tmp_path / "secret").write_text("a secret\n")
    (tree / "behind").symlink_to("fs")
    add_to_index(tree, "../secret", "behind/open.c", str(tmp_path / "secret"), ".git/config")
    listed = {str(file.relative_to(tree)) for file in unpack.source_files(tree)}
    assert listed >= {"behind", "fs/open.c"}
    assert not listed & {"../secret", "behind/open.c", ".git/config"}
    copy = fetch(str(tree), state, silent).tree
    assert not (copy.parent / "secret").exists()


def add_to_index(tree: Path, *names: str) -> None:
    """Write an index that git itself would not."""
    index = (tree / ".git/index").read_bytes()
    _, version, count = struct.unpack(">4sII", index[:12])
    assert version == 2
    rows, at = [], 12
    for _ in range(count):
        length = struct.unpack(">H", index[at + 60 : at + 62])[0] & 0xFFF
        size = (62 + length + 8) // 8 * 8
        rows.append((index[at + 62 : at + 62 + length], index[at : at + 62]))
        at += size
    made = [(name.encode(), rows[0][1][:60] + struct.pack(">H", len(name))) for name in names]
    body = b"".join(
        head + name + b"\0" * ((62 + len(name) + 8) // 8 * 8 - 62 - len(name)) for name, head in sorted([*rows, *made])
    )
    content = struct.pack(">4sII", b"DIRC", 2, count + len(made)) + body
    (tree / ".git/index").write_bytes(content + hashlib.sha1(content, usedforsecurity=False).digest())


def test_a_patch_committed_for_the_user_runs_nothing_either(
    tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = hostile(tmp_path, mark)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Tester")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "tester@example.org")
    text = (tree / "Kconfig").read_text().splitlines()
    mail = (
        f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\nSubject: [PATCH] a line\n\n---\n\n"
        "diff --git a/Kconfig b/Kconfig\n--- a/Kconfig\n+++ b/Kconfig\n"
        f"@@ -1,2 +1,3 @@\n {text[0]}\n+# new\n {text[1]}\n"
        "-- \n2\n"
    )
    assert commit_patch(tree, mail).endswith(" a line")
    assert not mark.exists(), mark.read_text()
    assert "# new" in (tree / "Kconfig").read_text()


def test_a_filter_that_cant_be_switched_off_is_refused(tmp_path: Path) -> None:
    tree = toy_repository(tmp_path)
    assert git.filter_overrides(tree) == []
    (tree / ".git/config").write_text('[filter "a=b"]\n\tclean = false\n')
    with pytest.raises(git.FilterUnfit, match="a filter called `a=b`"):
        git.filter_overrides(tree)
