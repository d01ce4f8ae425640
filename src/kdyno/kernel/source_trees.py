"""Kernel trees in the state directory: made whole or not at all, and never written to afterwards.

A tree may be untrusted. It holds files, directories, and links that stay inside of it: nothing that is done in a
tree reaches what is outside, and nobody but its owner reaches a tree before that is known.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from kdyno.base import process
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.state import State, translate_disk_full

Say = Callable[[str], None]

MOST_LINKS = 40
"""The most links that the kernel follows on the way to a file; a path with more of them leads nowhere."""
PARTIAL = re.compile(r"\.([a-z]+-[0-9a-f]{16,32})\.partial")
NO_FILES = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


class LinkLeadsOut(UserError):
    message = "the source tree holds {link}, a link to {target}, which is outside of the tree"
    hint = (
        "take it out of the source; in a git work tree, naming it in .git/info/exclude will do if git doesn't track it"
    )


class NotPlain(UserError):
    message = "the source tree holds {name}, which is {what}"
    hint = "take it out, since no kernel has one, or fetch the source again and compare its checksum"


class TreeNotRemovable(InfrastructureError):
    message = "can't remove {path}: {output}"
    hint = "remove it by hand"


def tree_path(identity: str, state: State) -> Path:
    """Return where the tree of this identity is or will be; Kbuild allows neither colons nor spaces in it."""
    kind, _, value = identity.partition(":")
    return state.sources / f"{kind}-{value[:32]}"


def made_once(
    tree: Path,
    fill: Callable[[Path], None],
    state: State,
    say: Say,
    check: Callable[[Path], object] = lambda _: None,
) -> Path:
    """Return `tree`; if it isn't there, let `fill` make it under another name and rename it when it is complete.

    `check` may refuse what was made; that there is nothing but plain files in it is known by then. A kill -9 leaves a
    partial directory, which the next call that makes a tree removes. Raise LinkLeadsOut and NotPlain.
    """
    if tree.is_dir():
        return tree
    waiting = "waiting for another kdyno that makes the same tree"
    with state.lock(lock_name(tree.name), on_wait=lambda: say(waiting)):
        if tree.is_dir():
            return tree
        _sweep(state)
        partial = partial_path(tree)
        remove_tree(partial)
        try:
            with translate_disk_full(partial):
                partial.mkdir(mode=0o700)
                fill(partial)
                require_plain(partial)
                check(partial)
                partial.chmod(0o755)
                partial.rename(tree)
        except BaseException:
            remove_tree(partial)
            raise
    return tree


def partial_path(tree: Path) -> Path:
    """Return where a tree is while it is being made."""
    return tree.with_name(f".{tree.name}.partial")


def lock_name(name: str) -> str:
    """Return the lock that is held while the tree of this name is being made."""
    return f"source-{name}"


def _sweep(state: State) -> None:
    """Remove what kdynos that were killed left of trees: nobody holds their locks."""
    if state.sources.is_symlink():  # what lies there isn't kdyno's
        return
    for left in filter(lambda path: PARTIAL.fullmatch(path.name), state.sources.iterdir()):
        with state.lock_if_free(lock_name(left.name[1:].removesuffix(".partial"))) as free:
            if free:
                remove_tree(left)


def require_plain(tree: Path) -> None:
    """Raise LinkLeadsOut or NotPlain unless a tree holds nothing but files, directories and links that stay in it.

    What is there belongs to its owner alone afterwards: no file runs as another user, and none is out of reach.
    """
    folders = [tree]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                mode = entry.stat(follow_symlinks=False).st_mode
                path = Path(entry.path)
                if stat.S_ISLNK(mode):
                    if _leads_out(tree, path):
                        raise LinkLeadsOut(link=path.relative_to(tree), target=path.readlink())
                elif not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                    raise NotPlain(name=path.relative_to(tree), what=NO_FILES.get(stat.S_IFMT(mode), "no file"))
                else:
                    fit = mode & 0o777 | (0o700 if stat.S_ISDIR(mode) else 0o600)
                    if fit != stat.S_IMODE(mode):
                        path.chmod(fit)
                    if stat.S_ISDIR(mode):
                        folders.append(path)


def _leads_out(tree: Path, link: Path) -> bool:
    """Return whether a link, with the links on its way, leads out of the tree. A link to a missing file doesn't."""
    at: list[str] = []
    left = [*reversed(link.relative_to(tree).parts)]
    links = 0
    while left:
        part = left.pop()
        if part == "..":
            if not at:
                return True
            at.pop()
            continue
        at.append(part)
        here = tree.joinpath(*at)
        if here.is_symlink():
            links += 1
            target = here.readlink()
            if target.is_absolute():
                return True
            if links > MOST_LINKS:
                return False
            at.pop()
            left += reversed(target.parts)
    return False


def copy_by_links(tree: Path, to: Path) -> None:
    """Fill the directory `to` with hard links to every file of `tree`: two seconds and no space for a kernel.

    Safe for trees whose files are replaced (as git apply does it) and never written in place.
    """
    process.output(["cp", "-al", f"{tree}/.", to], guarded=True)


def remove_tree(path: Path) -> None:
    """Remove a directory if it is there; rm is three times as fast as shutil on a hundred thousand files."""
    if not os.path.lexists(path):
        return
    removed = process.attempt(["rm", "-rf", "--", path], guarded=True)
    if removed.returncode != 0:
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            raise TreeNotRemovable(path=path, output=removed.stderr.strip())
