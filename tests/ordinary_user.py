"""Being an ordinary user for a while: root may write everywhere, and is refused nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def a_place_for_all() -> Iterator[Path]:
    """A directory that every user can reach; pytest's own can't be."""
    place = Path(tempfile.mkdtemp(prefix="kdyno-test-", dir="/tmp"))
    place.chmod(0o755)
    try:
        yield place
    finally:
        place.chmod(0o755)
        shutil.rmtree(place)


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Root becomes nobody; who isn't root is an ordinary user anyway. What is imported now may be out of reach."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
