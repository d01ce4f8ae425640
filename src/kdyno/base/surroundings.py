"""What the programs that kdyno starts see of the environment that it was called in: nothing by chance.

Variables name programs, libraries, options and directories to search: GIT_DIR another repository, COMPILER_PATH another
compiler, TAR_OPTIONS a command. So each program gets those alone that say where the user's things are and how to speak
to them. In a list of directories an empty or relative entry is the directory where kdyno happens to be called: what
lies there would run. Such entries are left out.
"""

from __future__ import annotations

import os
import re

HANDED_ON = (
    *("DISPLAY", "HOME", "KRB5CCNAME", "LANG", "LANGUAGE", "LOGNAME"),
    *("SHELL", "TERM", "TMPDIR", "TZ", "USER", "WAYLAND_DISPLAY"),
)
FAMILIES = re.compile(r"(CARGO|CCACHE|LC|RUSTUP|SSH|SUDO|XDG)_[A-Z_]+|[A-Za-z]+_(proxy|PROXY)")
"""Names of variables that belong together: of ccache, of a locale, of an agent of ssh's, of a proxy."""
SEARCHED = ("PATH", "LD_LIBRARY_PATH")
"""Lists of directories."""
SIZE = re.compile(r"[1-9][0-9]{0,3}")
"""A width or a height that a terminal can have."""


def handed_on() -> dict[str, str]:
    """Return the variables that a program sees which kdyno starts."""
    kept = {name: value for name, value in os.environ.items() if name in HANDED_ON or FAMILIES.fullmatch(name)}
    return kept | {name: _absolute(os.environ[name]) for name in SEARCHED if name in os.environ}


def settle() -> None:
    """Make of this process's environment what kdyno's own modules, and those that it uses, can rely on."""
    if "PATH" in os.environ:
        os.environ["PATH"] = _absolute(os.environ["PATH"])
    for name in ("COLUMNS", "LINES"):
        if not SIZE.fullmatch(os.environ.get(name, "")):
            os.environ.pop(name, None)
    # Arrays here are small: the threads that numpy starts for large ones take longer than they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _absolute(directories: str) -> str:
    """Return a list of directories without those that depend on where one stands."""
    return os.pathsep.join(entry for entry in directories.split(os.pathsep) if entry.startswith("/"))
