"""What a command of a build sees of the user's environment: nothing by chance."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

PASSED_ON = ("PATH", "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
"""Where tools are, and where ccache keeps files."""


def passed_on(scratch: Path) -> dict[str, str]:
    """What is passed on of it. Temporary files go to `scratch`: not every TMPDIR will do for Kbuild's scripts."""
    theirs = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**theirs, "TMPDIR": str(scratch)}


def nothing_but(environment: Mapping[str, str]) -> list[str]:
    """What stands before a command that gets this environment, to take the rest of the user's away.

    No value is on the command line, where everyone can read it: ccache's may hold a password.
    """
    return ["env", *(f"--unset={name}" for name in os.environ if name not in environment)]
