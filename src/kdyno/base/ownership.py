"""What root may rely on: files and directories that nobody can change or swap but root, and who called sudo.

It is what sshd's StrictModes asks of a home directory: who may write to a directory owns all that is below it.
"""

from __future__ import annotations

import os
import re
import stat
from functools import cache
from pathlib import Path

MOST_LINKS = 40
"""On the way to a file; the kernel follows no more either."""


def is_root() -> bool:
    """Return whether this is root, and not merely called so in a user namespace, where it is a user who may do no
    more.
    """
    return os.geteuid() == 0 and _root_behind() == 0


@cache
def _root_behind() -> int:
    """Return the user outside of this user namespace who is root in it: user_namespaces(7)."""
    for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines():
        inside, outside, _ = map(int, line.split())
        if inside == 0:
            return outside
    return 0


def why_in_others_hands(path: Path) -> str | None:
    """Return whom but root, and the user who called sudo, an absolute path depends on; None if on nobody.

    Each directory on the way is looked at, and the last entry. What is not there yet can't be another's. A link has to
    be root's own: one of the user's could lead root to any place.
    """
    trusted = _trusted()
    at, left, links = Path("/"), [*reversed(path.parts[1:])], 0
    if why := _why_not(at, at.stat(), trusted):
        return why
    while left:
        name = left.pop()
        step = at.parent if name == ".." else at / name
        try:
            status = step.lstat()
        except FileNotFoundError:
            at = step
            continue
        except OSError:  # what can't even be looked at fails by itself
            return None
        if not stat.S_ISLNK(status.st_mode):
            if why := _why_not(step, status, trusted):
                return why
            at = step
            continue
        links += 1
        if status.st_uid != 0:
            return f"{step} is a link of user {status.st_uid}'s"
        if links > MOST_LINKS:
            return f"{step} leads through too many links"
        target = step.readlink()
        if target.is_absolute():
            at = Path("/")
        left += [part for part in reversed(target.parts) if part != "/"]
    return None


def _trusted() -> tuple[int, ...]:
    caller = os.environ.get("SUDO_UID", "")
    return (0, int(caller)) if re.fullmatch(r"[0-9]{1,10}", caller) else (0,)


def _why_not(path: Path, status: os.stat_result, trusted: tuple[int, ...]) -> str | None:
    if status.st_uid not in trusted:
        return f"{path} belongs to user {status.st_uid}"
    # In a directory such as /tmp everybody may make files, but nobody may rename or remove another's.
    for_all = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not for_all:
        return f"{path} can be written to by others than its owner"
    return None
