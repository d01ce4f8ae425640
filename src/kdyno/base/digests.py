"""Digests of files, remembered by stat: a file that did not change isn't hashed again, even if there are 85,000 of
them.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from kdyno.base.files import write_whole
from kdyno.base.state import DiskFull, State, StateNotWritable

SETTLED_SECONDS = 2.0
"""Seconds. A file that changed this recently may change again within one tick of its clock, so its digest isn't
remembered.
"""


def stat_line(path: Path) -> tuple[str, float]:
    """Return one line that changes when the file does, and the time of the last change."""
    st = path.lstat()
    line = f"{path}\0{st.st_dev}\0{st.st_ino}\0{st.st_mode}\0{st.st_size}\0{st.st_mtime_ns}\0{st.st_ctime_ns}\n"
    return line, max(st.st_mtime, st.st_ctime)


def stat_signature(paths: Iterable[Path]) -> tuple[str, bool]:
    """Return a digest of the stats of all these files, and whether they have been left alone long enough to trust
    it.
    """
    signature = hashlib.sha256()
    newest = 0.0
    for path in paths:
        line, changed = stat_line(path)
        signature.update(os.fsencode(line))
        newest = max(newest, changed)
    return signature.hexdigest(), time.time() - newest > SETTLED_SECONDS


def recall(signature: str, state: State) -> str | None:
    """Return the value that was remembered for this signature; None if there is none."""
    try:
        return (state.digests / signature).read_text(encoding="utf-8") or None
    except (OSError, StateNotWritable):
        return None


def remember(signature: str, value: str, state: State) -> None:
    """Keep a value for this signature, if it can be written; after a kill -9 the file is whole or absent."""
    with suppress(OSError, StateNotWritable, DiskFull):
        write_whole(state.digests / signature, value, durable=False, refused=StateNotWritable)


def file_digest(path: Path, state: State) -> str:
    """Return the SHA-256 of a file's content, 64 hex digits."""
    signature, settled = stat_signature([path])
    if known := recall(signature, state):
        return known
    with path.open("rb") as file:
        value = hashlib.file_digest(file, "sha256").hexdigest()
    if settled and stat_signature([path])[0] == signature:
        remember(signature, value, state)
    return value
