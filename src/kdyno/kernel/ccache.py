"""ccache: what makes the second build fast. It changes how long a build takes, never what comes out of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from kdyno.kernel.toolchain import Toolchain

SLOPPINESS = "include_file_ctime,include_file_mtime"
"""Links and fresh patches renew the times of headers in the state directory; their contents are hashed anyway."""


def is_installed() -> bool:
    return shutil.which("ccache") is not None and not os.environ.get("CCACHE_DISABLE")


def make_words(words: Sequence[str], toolchain: Toolchain) -> tuple[str, ...]:
    """Put ccache before the compiler, where it is installed."""
    if not is_installed():
        return tuple(words)
    kept = [word for word in words if not word.startswith("CC=")]
    return (*kept, f"CC=ccache {toolchain.command}")


def environment(build: Path) -> dict[str, str]:
    """Where the cache is stays the user's choice (CCACHE_DIR and the rest of theirs); hits must not depend on paths.

    Kbuild compiles with paths relative to the object directory (see places.py); BASEDIR and NOHASHDIR take care of
    the few absolute ones and of the working directory.
    """
    if not is_installed():
        return {}
    theirs = {name: value for name, value in os.environ.items() if name.startswith("CCACHE_")}
    ours = {"CCACHE_BASEDIR": str(build), "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": SLOPPINESS}
    return {**theirs, **ours}
