"""The file that marks a directory as kdyno's: kdyno makes and removes nothing in directories of others."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from kdyno.base.errors import UserError

MARKER = ".kdyno-state"
TEXT = "This directory is kdyno's own: it removes what it made here. docs/store.md says more.\n"
STORE = "store.sqlite"
LOCKS = "locks"
IN_USE = "in-use.lock"
"""A lock: shared by all who rely on the content of the directory, exclusive for the one that removes content."""


class StateOfOthers(UserError):
    message = "{path} is not a state directory: it has content that kdyno didn't make"
    hint = "name an empty directory, or a new one, with --state DIR or KDYNO_STATE; if it is kdyno's after all: {adopt}"


def claim(root: Path) -> None:
    """Mark a directory that is empty, or that an earlier kdyno used. Raise StateOfOthers and OSError."""
    marker = root / MARKER
    if _is_file(marker):
        return
    if any(path != marker for path in root.iterdir()) and not (_is_file(marker) or _was_used(root)):
        raise StateOfOthers(path=root, adopt=f"touch {marker}")
    with suppress(FileExistsError):  # another kdyno was faster
        descriptor = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.write(descriptor, TEXT.encode())
        finally:
            os.close(descriptor)


def is_marked(root: Path) -> bool:
    """Return whether a directory is kdyno's; finding out creates nothing."""
    return _is_file(root / MARKER) or _was_used(root)


def _is_file(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def _was_used(root: Path) -> bool:
    """Return whether an earlier kdyno took a lock in it, or has its store there: no other program makes such a
    table.
    """
    lock, path = root / LOCKS / IN_USE, root / STORE
    if not lock.parent.is_symlink() and _is_file(lock) and lock.stat().st_size == 0:
        return True
    if not _is_file(path):
        return False
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{quote(str(path))}?immutable=1", uri=True)) as store:
        return store.execute("SELECT 1 FROM sqlite_master WHERE name = 'kdyno_meta'").fetchone() is not None
    return False
