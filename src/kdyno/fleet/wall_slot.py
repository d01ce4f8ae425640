"""The wall slot of a host: one worker holds it, by a lock that ends with its process.

The lock is a file outside of any state directory: workers with different ones would not see each other. The queue keeps
a lease as well, for hosts that share a name, or a worker that was started in another container.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kdyno.fleet.errors import WallSlotTaken

DIRECTORIES = (Path("/run/lock"), Path("/var/lock"))


@contextmanager
def hold_wall_slot(host: str) -> Iterator[None]:
    """Hold the wall slot of this host. Raises WallSlotTaken."""
    folder = next((path for path in DIRECTORIES if os.access(path, os.W_OK)), Path(tempfile.gettempdir()))
    path = folder / f"kdyno-wall-{re.sub(r'[^A-Za-z0-9_.-]', '-', host)[:100]}.lock"
    try:
        # For all users of the host; nothing is ever written to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o444)
    except OSError as error:
        raise WallSlotTaken(path=f"{path} ({error.strerror})") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise WallSlotTaken(path=path) from error
        yield
    finally:
        os.close(descriptor)
