"""Reading the small files of /proc and /sys. Missing, unreadable and invalid files are None, and never an error.

Every reader takes a root, so that a tree of files can represent a host.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

LONGEST = 1 << 20
"""The most bytes to read of a file; /proc/stat of a large host has some ten thousand."""

PIECE = 1 << 14

NUMBER = re.compile(r"-?[0-9]{1,18}")


def text(path: Path) -> str | None:
    """Return the content without surrounding white space."""
    content = bytearray()
    try:
        with path.open("rb", buffering=0) as file:
            while len(content) < LONGEST and (piece := file.read(PIECE)):
                content += piece
    except OSError:
        return None
    return content.decode(errors="replace").strip()


def number(path: Path) -> int | None:
    """Return the whole number in a file; below 10**18, so that a float can represent it."""
    content = text(path)
    return int(content) if content is not None and NUMBER.fullmatch(content) else None


def fields(path: Path) -> dict[str, int]:
    """Return the numbers by name of lines `name number`, as in /proc/vmstat; other lines are ignored."""
    pairs = (line.split() for line in (text(path) or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and NUMBER.fullmatch(pair[1])}


def matching(root: Path, pattern: str) -> list[Path]:
    """Return the matching paths below `root`, with numbers in names in numerical order: cpu2 before cpu10."""
    try:
        return sorted(root.glob(pattern), key=_natural)
    except OSError:
        return []


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", str(path))]


def processes(root: Path) -> list[Path]:
    """Return the directories of all processes, in no particular order."""
    try:
        return [path for path in (root / "proc").iterdir() if NUMBER.fullmatch(path.name)]
    except OSError:
        return []


def sum_of(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of the readable numbers; None if none was readable."""
    readable = [value for value in numbers if value is not None]
    return sum(readable) if readable else None


def cpu_groups(root: Path, pid: int | None = None) -> list[Path]:
    """Return the directories of control groups that limit the CPU time of a process (None: this one), its own first.

    They are those of both hierarchies of cgroups(7): version 2, and the controller `cpu` of version 1.
    """
    groups: list[Path] = []
    for line in (text(root / "proc" / str(pid or os.getpid()) / "cgroup") or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) != 3 or ".." in Path(parts[2]).parts:  # outside of this namespace
            continue
        _, controllers, path = parts
        if controllers == "":
            mounts = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
        elif "cpu" in controllers.split(","):
            mounts = [root / "sys/fs/cgroup" / controllers, root / "sys/fs/cgroup/cpu"]
        else:
            continue
        mount = next((mount for mount in mounts if (mount / "cgroup.procs").exists()), None)
        if mount is not None:
            own = Path(path.lstrip("/"))
            groups += [mount / group for group in (own, *own.parents) if (mount / group).is_dir()]
    return list(dict.fromkeys(groups))
