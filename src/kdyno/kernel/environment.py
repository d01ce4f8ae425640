"""The part of the user's environment that a command of a build sees: nothing by chance."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

PASSED_ON = ("PATH", "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
"""Variables for the place of tools, and of ccache's files."""


def passed_on(scratch: Path) -> dict[str, str]:
    """Return the part that is passed on. Temporary files go to `scratch`: not every TMPDIR is suitable for Kbuild's
    scripts.
    """
    theirs = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**theirs, "TMPDIR": str(scratch)}


def nothing_but(environment: Mapping[str, str]) -> list[str]:
    """Return the arguments before a command that gets this environment, which remove the rest of the user's.

    No value is on the command line, where everyone can read it: ccache's may hold a password.
    """
    return ["env", *(f"--unset={name}" for name in os.environ if name not in environment)]
