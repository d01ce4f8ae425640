"""The journal: what the host's knobs were before kdyno turned them. It is on the disk before the first knob moves.

It is good until the host starts again: then the kernel's own defaults are back, and the old values mean nothing.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kdyno.errors import UserError
from kdyno.files import read_whole, write_whole
from kdyno.frozen import Frozen
from kdyno.hostknobs import files
from kdyno.hostknobs.knobs import owner_of
from kdyno.state import State, StateNotWritable

LOCK = "host-knobs"
LONGEST_SHOWN = 80
FILE = "host-knobs.json"
MOST_BYTES = 8_000_000
"""Of a journal: twice that of a host with 8,192 CPUs and as many interrupts."""


class JournalDamaged(UserError):
    message = "{path} does not say what the host's knobs were: {why}"
    hint = "set the knobs by hand, or restart the host, and remove the file"


class Journal(Frozen):
    """Old values by path below the root, in the order in which they were changed."""

    schema_version: Literal[1] = 1
    boot_id: str
    """Of the host, while they were changed."""
    values: dict[str, str] = {}


@contextmanager
def journal_lock(state: State) -> Iterator[None]:
    """Keep other kdynos off the journal. Raises StateNotWritable, also for what the body has no right to write.

    After `sudo kdyno doctor --host --set` the lock and the journal are root's.
    """
    try:
        with state.lock(LOCK):
            yield
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StateNotWritable(path=error.filename or state.root, why=error.strerror) from error
        raise


def boot_id(root: Path) -> str:
    return files.text(root / "proc/sys/kernel/random/boot_id") or ""


def journal_path(state: State) -> Path:
    """Raises StateNotOurs."""
    return state.file(FILE)


def read_journal(state: State) -> Journal | None:
    """Return the journal; None if there is none. Raises JournalDamaged and StateNotOurs.

    It may be root who reads what somebody else could write: what is no plain file is refused, and so is a path that is
    no knob's, and a value that its file can't hold.
    """
    path = journal_path(state)
    try:
        journal = Journal.model_validate_json(read_whole(path, MOST_BYTES, follow_link=False))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise JournalDamaged(path=path, why=error.errors(include_url=False)[0]["msg"]) from None
    except OSError as error:
        raise JournalDamaged(path=path, why=error.strerror) from None
    for name, value in journal.values.items():
        if (owner := owner_of(name)) is None:
            raise JournalDamaged(path=path, why=f"{name[:LONGEST_SHOWN]!r} is no knob's file")
        if not owner[1].can_be(value):
            raise JournalDamaged(path=path, why=f"{value[:LONGEST_SHOWN]!r} is no value of {name}")
    return journal


def journal_of_this_start(state: State, root: Path = Path("/")) -> Journal | None:
    """The journal, if there is one and the host hasn't started again since."""
    journal = read_journal(state)
    return journal if journal and journal.boot_id == boot_id(root) else None


def write_journal(state: State, journal: Journal) -> None:
    """Put the journal in place at once, and on the disk; one without values is removed."""
    path = journal_path(state)
    if not journal.values:
        path.unlink(missing_ok=True)
        return
    # Everybody may read what root has set.
    write_whole(path, journal.model_dump_json(indent=1) + "\n", mode=0o644, refused=StateNotWritable)
