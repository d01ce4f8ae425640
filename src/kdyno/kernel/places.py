"""The places of a build: where sources seem to be and where objects go.

builds/<key>/ holds a symlink to every top entry of the source tree, and the object directory `o`. Kbuild calls the
source `..` when it is the parent of the object directory (`srctree := ..` in the top Makefile), and then no command
of the compiler holds an absolute path: ccache hits across object directories and across patched copies of a tree,
and neither __FILE__ nor debug information differs from one state directory to another. It costs thirty symlinks;
Kbuild with O= writes nothing into the sources behind them.
"""

from __future__ import annotations

from pathlib import Path

from kdyno.errors import UserError
from kdyno.kernel.trees import remove_tree
from kdyno.state import State

OBJECTS = "o"


class PathUnfit(UserError):
    message = "the kernel can't be built in {path}: Kbuild allows no spaces and no colons in paths"
    hint = "name another state directory with --state DIR or KDYNO_STATE"


def prepare(tree: Path, key: str, state: State) -> Path:
    """Make the build directory afresh and return the object directory in it.

    What an earlier build left there (after kill -9) is removed first: a half-written object with a new time stamp
    would be taken for finished, and a wrong object is silent corruption. ccache makes up for the lost time.
    """
    build = directory(key, state)
    if " " in str(build) or ":" in str(build):
        raise PathUnfit(path=build)
    remove_tree(build)
    objects = build / OBJECTS
    objects.mkdir(parents=True)
    for entry in tree.iterdir():
        (build / entry.name).symlink_to(entry)
    return objects


def directory(key: str, state: State) -> Path:
    return state.builds / key


def log_file(key: str, state: State) -> Path:
    """The log of a build under way, or of one that failed."""
    return state.builds / f"{key}.log"
