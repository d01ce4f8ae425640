"""The version of the kernel in a tree."""

from __future__ import annotations

import re
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole

MOST_BYTES = 1 << 20
"""Bytes of a kernel's top Makefile, which has some 70,000."""
NEEDED_IN_A_TREE = ("Kconfig", "scripts/kconfig/merge_config.sh")


class NotAKernelTree(UserError):
    message = "{spec} is not a kernel source tree: {why}"
    hint = "name the directory or tarball that holds the kernel's top Makefile"


def kernel_version(tree: Path, spec: str) -> str:
    """Return the kernel's own version, read from its Makefile: `6.12.117`, `7.2.0-rc3`."""
    try:
        makefile = read_whole(tree / "Makefile", MOST_BYTES).decode(errors="replace")
    except OSError as error:
        raise NotAKernelTree(spec=spec, why="it has no readable Makefile") from error
    parts: dict[str, str] = {
        name: value.strip()
        for name, value in re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=(.*)$", makefile, re.M)
    }
    if not parts.get("VERSION") or not parts.get("PATCHLEVEL"):
        raise NotAKernelTree(spec=spec, why="its Makefile sets no VERSION and PATCHLEVEL")
    for name in NEEDED_IN_A_TREE:
        if not (tree / name).exists():
            raise NotAKernelTree(spec=spec, why=f"it has no {name}")
    numbers = [parts["VERSION"], parts["PATCHLEVEL"], *filter(None, [parts.get("SUBLEVEL")])]
    return ".".join(numbers) + parts.get("EXTRAVERSION", "")
