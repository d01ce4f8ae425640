"""The part of kdyno's environment that the programs it starts see: nothing by chance.

Variables name programs, libraries, options and directories to search: GIT_DIR another repository, COMPILER_PATH another
compiler, TAR_OPTIONS a command. So each program gets only the variables that say where the user's files are and how to
show text to the user. An empty or relative entry in a list of directories means kdyno's current directory: a program
that lies there would run. Such entries are left out.
"""

from __future__ import annotations

import os
import re

HANDED_ON = (
    *("DISPLAY", "HOME", "KRB5CCNAME", "LANG", "LANGUAGE", "LOGNAME"),
    *("SHELL", "TERM", "TMPDIR", "TZ", "USER", "WAYLAND_DISPLAY"),
)
FAMILIES = re.compile(r"(CARGO|CCACHE|LC|RUSTUP|SSH|SUDO|XDG)_[A-Z_]+|[A-Za-z]+_(proxy|PROXY)")
"""Variables that belong together: of ccache, of a locale, of an ssh agent, of a proxy."""
SEARCHED = ("PATH", "LD_LIBRARY_PATH")
"""Lists of directories."""
SIZE = re.compile(r"[1-9][0-9]{0,3}")
"""A width or a height that a terminal can have."""


def passed_environment() -> dict[str, str]:
    """Return the variables that a program started by kdyno sees."""
    kept = {name: value for name, value in os.environ.items() if name in HANDED_ON or FAMILIES.fullmatch(name)}
    return kept | {name: _absolute(os.environ[name]) for name in SEARCHED if name in os.environ}


def settle() -> None:
    """Set up this process's environment so that kdyno's own modules, and the libraries that they use, can rely on
    it.
    """
    if "PATH" in os.environ:
        os.environ["PATH"] = _absolute(os.environ["PATH"])
    for name in ("COLUMNS", "LINES"):
        if not SIZE.fullmatch(os.environ.get(name, "")):
            os.environ.pop(name, None)
    # Arrays here are small: starting numpy's threads for large ones takes longer than they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _absolute(directories: str) -> str:
    """Return a list of directories without the entries that depend on the current directory."""
    return os.pathsep.join(entry for entry in directories.split(os.pathsep) if entry.startswith("/"))
