"""A quiet place on this host for a program that is timed: a CPU of its own, and memory that no disk is behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kdyno.base.errors import UserError

FIRST = -20
"""The highest priority (niceness)."""
MOUNTS = Path("/proc/mounts")


class NoTmpfs(UserError):
    message = "{what} a writable tmpfs: {why}"
    hint = "mount a tmpfs: mount -t tmpfs tmpfs /dev/shm"


def writable_tmpfs(what: str, mounts: Path = MOUNTS, *, executable: bool = False) -> Path:
    """Return the mount point of a writable tmpfs; `what` says what needs it, for people. From an `executable` one code
    can be mapped. Raises NoTmpfs.
    """
    try:
        rows = [line.split(" ") for line in mounts.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise NoTmpfs(what=what, why=f"{mounts}: {error.strerror}") from error
    options = {Path(row[1]): row[3].split(",") for row in rows if row[2] == "tmpfs"}
    directories = [path for path, words in options.items() if "rw" in words and not (executable and "noexec" in words)]
    for directory in sorted(directories, key=lambda directory: (directory != Path("/dev/shm"), str(directory))):
        if os.access(directory, os.W_OK | os.X_OK) and not str(directory).startswith("/sys"):
            return directory
    lacking = f"none is mounted read-write{' and exec' if executable else ''}"
    raise NoTmpfs(what=what, why=f"not {', '.join(map(str, directories))}" if directories else lacking)


def quieten(pid: int, cpu: int | None = None) -> None:
    """Keep a program on this CPU, or on the last one that this process may use, before all other programs there.

    Without the right to do so, or on the only CPU, it goes before others as far as it may: a program that hangs must
    not keep kdyno from ending it.
    """
    allowed = os.sched_getaffinity(0)
    with suppress(ProcessLookupError):  # it has ended
        os.sched_setaffinity(pid, {max(allowed) if cpu is None else cpu})
        if len(allowed) > 1:
            with suppress(PermissionError):
                os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
                return
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, pid, FIRST)


@contextmanager
def pin_to_cpu() -> Iterator[None]:
    """Keep this thread, and what it starts, on the last CPU that it may use: the first ones serve most interrupts.

    It goes before others there, if it may: a share of the CPU is no other code of the kernel.
    """
    allowed, priority = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, FIRST)
        yield
    finally:
        with suppress(OSError):  # CPUs may have been taken away meanwhile
            os.sched_setaffinity(0, allowed)
            os.setpriority(os.PRIO_PROCESS, 0, priority)
