"""Kernel trees in the state directory: made whole or not at all, and never written to afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from kdyno import process
from kdyno.errors import InfrastructureError
from kdyno.state import State, disk_full_is_said

Say = Callable[[str], None]


class TreeNotRemovable(InfrastructureError):
    message = "can't remove {path}: {said}"
    hint = "remove it by hand"


def tree_path(identity: str, state: State) -> Path:
    """Where the tree of this identity is or will be; Kbuild allows neither colons nor spaces in it."""
    kind, _, value = identity.partition(":")
    return state.sources / f"{kind}-{value[:32]}"


def made_once(tree: Path, fill: Callable[[Path], None], state: State, say: Say) -> Path:
    """Return `tree`; if it isn't there, let `fill` make it under another name and rename it when it is complete.

    A kill -9 leaves a partial directory, which the next call removes.
    """
    if tree.is_dir():
        return tree
    with state.lock(f"source-{tree.name}", on_wait=lambda: say("waiting for another kdyno that makes the same tree")):
        if tree.is_dir():
            return tree
        partial = tree.with_name(f".{tree.name}.partial")
        remove_tree(partial)
        try:
            with disk_full_is_said(partial):
                partial.mkdir()
                fill(partial)
                partial.rename(tree)
        except BaseException:
            remove_tree(partial)
            raise
    return tree


def copy_by_links(tree: Path, to: Path) -> None:
    """Fill the directory `to` with hard links to every file of `tree`: two seconds and no space for a kernel.

    Safe for trees whose files are replaced (as git apply does it) and never written in place.
    """
    process.output(["cp", "-al", f"{tree}/.", to], guarded=True)


def remove_tree(path: Path) -> None:
    """Remove a directory if it is there; rm is three times as fast as shutil on a hundred thousand files."""
    if not path.exists():
        return
    removed = process.attempt(["rm", "-rf", "--", path], guarded=True)
    if removed.returncode != 0:
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            raise TreeNotRemovable(path=path, said=removed.stderr.strip())
