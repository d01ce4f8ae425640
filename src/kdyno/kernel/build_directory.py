"""The directory of a build: the apparent place of sources and the place of objects.

builds/<key>/ holds a symlink to every top entry of the source tree, the object directory `o`, and `tmp`, the TMPDIR of
the build. Kbuild calls the source `..` when it is the parent of the object directory (`srctree := ..` in the top
Makefile), and then no command of the compiler holds an absolute path: ccache hits across object directories and across
patched copies of a tree, and __FILE__ doesn't differ from one state directory to another. (The directory itself, which
debug information names, is `.` in all of them: NO_DIRECTORY in plan.py.) It costs thirty symlinks; Kbuild with O=
writes nothing into the sources behind them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.kernel.source_trees import remove_tree

OBJECTS = "o"
TEMPORARY = "tmp"
PLAIN = "plain"
"""The directory in which a delegated kernel is configured for its reference compiler alone, to find what was held."""
OWN = frozenset(
    {
        OBJECTS,
        TEMPORARY,
        "answers",
        "inputs",
        "lkd",
        "linker",
        "ccd",
        "delegation.jsonl",
        PLAIN,
        "ccache-probe.c",
        "ccache-probe.o",
        "ccache-bin",
    }
)
"""Everything that kdyno makes in a build directory. A link of such a name in an untrusted tree would be written
through.
"""
UNFIT = re.compile(r"""[\s:,;=$%&|<>()'"`\\]""")
"""Characters that no path of a build may hold. Kbuild itself refuses spaces and colons; others are changed by make, the
shell or gcc's -Wp (tried on 6.12, one by one).
"""
WORDS = {" ": "spaces", "\t": "tabs", "\n": "line ends"}


class PathUnfit(UserError):
    message = "kernels can't be built in {path}: {why}"
    hint = "name another state directory with --state DIR or KDYNO_STATE"


class BuildNameTaken(UserError):
    message = "the source tree holds {name} at its top, a name which kdyno needs for a file of its own"
    hint = "rename it in the source: no kernel has one"


def why_unfit(state: State) -> str | None:
    """Return what is wrong with the path of the state directory, as it is named and where it leads; None if nothing
    is.
    """
    characters = sorted({*UNFIT.findall(str(state.root)), *UNFIT.findall(str(state.root.resolve()))})
    if not characters:
        return None
    return f"Kbuild takes no {' and no '.join(WORDS.get(char, char) for char in characters)} in paths"


def require_fit(state: State) -> None:
    """Raise PathUnfit if no kernel can be built in this state directory."""
    if why := why_unfit(state):
        raise PathUnfit(path=state.root, why=why)


def prepare(tree: Path, key: str, state: State, copied: Collection[str] = ()) -> Path:
    """Make the build directory afresh and return the object directory in it. The entries `copied` are copies of those
    in the tree, with their times, instead of links.

    Files of an earlier build (after kill -9) are removed first: a half-written object with a new time stamp would be
    taken for finished, and a wrong object is silent corruption. ccache makes up for the lost time. Raise
    BuildNameTaken.
    """
    entries = sorted(tree.iterdir())
    for entry in entries:
        if entry.name in OWN:
            raise BuildNameTaken(name=entry.name)
    build = directory(key, state)
    remove_tree(build)
    objects = build / OBJECTS
    objects.mkdir(parents=True)
    (build / TEMPORARY).mkdir()
    for entry in entries:
        place = build / entry.name
        if entry.name not in copied or entry.is_symlink():
            place.symlink_to(entry)
        elif entry.is_dir():
            shutil.copytree(entry, place, symlinks=True)
        else:
            shutil.copy2(entry, place)
    return objects


def directory(key: str, state: State) -> Path:
    return state.builds / key


def log_file(key: str, state: State) -> Path:
    """Return the log of a build under way, or of one that failed."""
    return state.builds / f"{key}.log"
