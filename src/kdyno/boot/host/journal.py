"""The journal: what the host's knobs were before kdyno turned them. It is on the disk before the first knob moves.

It is good until the host starts again: then the kernel's own defaults are back, and the old values mean nothing.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole, remove_unfinished, write_whole
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import first_fault
from kdyno.base.state import State, StateNotWritable
from kdyno.boot.host import files
from kdyno.boot.host.knobs import KNOBS, RUN_KNOBS, HostKnob, owner_of

LONGEST_SHOWN = 80
MOST_BYTES = 8_000_000
"""Of a journal: twice that of a host with 8,192 CPUs and as many interrupts."""


@dataclass(frozen=True)
class Keeper:
    """Who turns knobs, and keeps a journal of it."""

    name: str
    """Of its lock; its file is NAME.json."""
    knobs: tuple[HostKnob, ...]
    """Those that it may turn."""


SETTING = Keeper("host-knobs", KNOBS)
"""`kdyno doctor --host --set`: until --restore."""
RUNNING = Keeper("run-knobs", RUN_KNOBS)
"""A round on the machine `local`: until it ends."""


class JournalDamaged(UserError):
    message = "{path} does not say what the host's knobs were: {why}"
    hint = "set the knobs by hand, or restart the host, and remove the file"


class Journal(Frozen):
    """Old values by path below the root, in the order in which they were changed."""

    schema_version: Literal[1] = 1
    boot_id: str
    """Of the host, while they were changed."""
    values: dict[str, str] = {}


RUN_DIRECTORY = Path("/run/kdyno")
"""One for the whole host, whoever runs kdyno and wherever its state lies. It goes with the kernel that was set."""


def running_state() -> State:
    """Where the journal of rounds on the machine `local` lies."""
    return State(RUN_DIRECTORY)


@contextmanager
def journal_lock(state: State, keeper: Keeper = SETTING) -> Iterator[None]:
    """Keep other kdynos off the journal, and remove what a write of it left that was killed.

    Raises StateNotOurs, and StateNotWritable, also for what the body has no right to write.

    After `sudo kdyno doctor --host --set` the lock and the journal are root's.
    """
    try:
        with state.lock(keeper.name):
            remove_unfinished(journal_path(state, keeper))
            yield
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StateNotWritable(path=error.filename or state.root, why=error.strerror) from error
        raise


def boot_id(root: Path) -> str:
    return files.text(root / "proc/sys/kernel/random/boot_id") or ""


def journal_path(state: State, keeper: Keeper = SETTING) -> Path:
    """Raises StateNotOurs."""
    return state.file(f"{keeper.name}.json")


def read_journal(state: State, keeper: Keeper = SETTING) -> Journal | None:
    """Return the journal; None if there is none. Raises JournalDamaged and StateNotOurs.

    It may be root who reads what somebody else could write: what is no plain file is refused, and so is a path that is
    no knob's, and a value that its file can't hold.
    """
    path = journal_path(state, keeper)
    try:
        journal = Journal.model_validate_json(read_whole(path, MOST_BYTES, follow_link=False))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise JournalDamaged(path=path, why=first_fault(error)) from None
    except OSError as error:
        raise JournalDamaged(path=path, why=error.strerror) from None
    for name, value in journal.values.items():
        if (owner := owner_of(name, keeper.knobs)) is None:
            raise JournalDamaged(path=path, why=f"{name[:LONGEST_SHOWN]!r} is no knob's file")
        if not owner[1].can_be(value):
            raise JournalDamaged(path=path, why=f"{value[:LONGEST_SHOWN]!r} is no value of {name}")
    return journal


def journal_of_this_start(state: State, root: Path = Path("/")) -> Journal | None:
    """The journal, if there is one and the host hasn't started again since."""
    journal = read_journal(state)
    return journal if journal and journal.boot_id == boot_id(root) else None


def write_journal(state: State, journal: Journal, keeper: Keeper = SETTING) -> None:
    """Put the journal in place at once, and on the disk; one without values is removed."""
    path = journal_path(state, keeper)
    if not journal.values:
        path.unlink(missing_ok=True)
        return
    # Everybody may read what root has set.
    write_whole(path, journal.model_dump_json(indent=1) + "\n", mode=0o644, refused=StateNotWritable)
