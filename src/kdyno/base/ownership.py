"""The files and directories that root may rely on: nobody but root, and the user who called sudo, can change or swap
them.

The rule is that of sshd's StrictModes for a home directory: whoever may write to a directory owns all that is below it.
"""

from __future__ import annotations

import os
import re
import stat
from functools import cache
from pathlib import Path

MOST_LINKS = 40
"""The most links on the way to a file; the kernel follows no more either."""


def is_root() -> bool:
    """Return whether this is the real root, not a user who is called root in a user namespace and has no more
    rights.
    """
    return os.geteuid() == 0 and _root_behind() == 0


@cache
def _root_behind() -> int:
    """Return the user outside of this user namespace who is root inside it: user_namespaces(7)."""
    for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines():
        inside, outside, _ = map(int, line.split())
        if inside == 0:
            return outside
    return 0


def untrusted_reason(path: Path) -> str | None:
    """Return why an absolute path depends on others than root and the user who called sudo; None if it doesn't.

    Each directory on the way is checked, and the last entry. A path that doesn't exist yet belongs to nobody else. A
    link has to be root's own: one of the user's could lead root to any place.
    """
    trusted = _trusted_users()
    current, remaining, links = Path("/"), [*reversed(path.parts[1:])], 0
    if why := _step_untrusted_reason(current, current.stat(), trusted):
        return why
    while remaining:
        name = remaining.pop()
        step = current.parent if name == ".." else current / name
        try:
            status = step.lstat()
        except FileNotFoundError:
            current = step
            continue
        except OSError:  # opening it will fail anyway
            return None
        if not stat.S_ISLNK(status.st_mode):
            if why := _step_untrusted_reason(step, status, trusted):
                return why
            current = step
            continue
        links += 1
        if status.st_uid != 0:
            return f"{step} is a link that belongs to user {status.st_uid}"
        if links > MOST_LINKS:
            return f"{step} goes through too many links"
        target = step.readlink()
        if target.is_absolute():
            current = Path("/")
        remaining += [part for part in reversed(target.parts) if part != "/"]
    return None


def _trusted_users() -> tuple[int, ...]:
    caller = os.environ.get("SUDO_UID", "")
    return (0, int(caller)) if re.fullmatch(r"[0-9]{1,10}", caller) else (0,)


def _step_untrusted_reason(path: Path, status: os.stat_result, trusted: tuple[int, ...]) -> str | None:
    if status.st_uid not in trusted:
        return f"{path} belongs to user {status.st_uid}"
    # In a directory such as /tmp everybody may create files, but nobody may rename or remove those of others.
    for_all = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not for_all:
        return f"{path} can be written to by users other than its owner"
    return None
