"""The journal: the values of the host's knobs before kdyno set them. It is on disk before the first knob changes.

It is valid until the host restarts: then the defaults of the kernel apply again, and the old values are obsolete.
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
"""The most bytes of a journal: twice that of a host with 8,192 CPUs and as many interrupts."""


@dataclass(frozen=True)
class Keeper:
    """A user of knobs that keeps a journal."""

    name: str
    """The name of its lock; the journal is NAME.json."""
    knobs: tuple[HostKnob, ...]
    """The knobs that it may set."""


SETTING = Keeper("host-knobs", KNOBS)
"""The keeper of `kdyno doctor --host --set`, which sets knobs until --restore."""
RUNNING = Keeper("run-knobs", RUN_KNOBS)
"""The keeper of a round on the machine `local`, which sets knobs until the round ends."""


class JournalDamaged(UserError):
    message = "{path} is not a valid journal of the host's knobs: {why}"
    hint = "restart the host, or set the knobs manually, and remove the file"


class Journal(Frozen):
    """The old values by path below the root, in the order of their changes."""

    schema_version: Literal[1] = 1
    boot_id: str
    """The boot id of the host during the changes."""
    values: dict[str, str] = {}


RUN_DIRECTORY = Path("/run/kdyno")
"""The directory of the journal of the whole host, for all users and state directories. It disappears at a restart."""


def running_state() -> State:
    """Return the state with the journal of rounds on the machine `local`."""
    return State(RUN_DIRECTORY)


@contextmanager
def journal_lock(state: State, keeper: Keeper = SETTING) -> Iterator[None]:
    """Lock the journal, and remove the temporary file of a killed write.

    Raises StateNotOurs, and StateNotWritable, also if the body may not write.

    After `sudo kdyno doctor --host --set` the lock and the journal belong to root.
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
    """Return the path of the journal. Raises StateNotOurs."""
    return state.file(f"{keeper.name}.json")


def read_journal(state: State, keeper: Keeper = SETTING) -> Journal | None:
    """Return the journal; None if there is none. Raises JournalDamaged and StateNotOurs.

    Root may read a file that other users could write. So everything but a regular file is refused, and so are paths
    that are not knobs, and values that are invalid for their knobs.
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
            raise JournalDamaged(path=path, why=f"{name[:LONGEST_SHOWN]!r} is not the file of a knob")
        if not owner[1].can_be(value):
            raise JournalDamaged(path=path, why=f"{value[:LONGEST_SHOWN]!r} is not a valid value of {name}")
    return journal


def journal_of_this_start(state: State, root: Path = Path("/")) -> Journal | None:
    """Return the journal if it exists and the host hasn't restarted since."""
    journal = read_journal(state)
    return journal if journal and journal.boot_id == boot_id(root) else None


def write_journal(state: State, journal: Journal, keeper: Keeper = SETTING) -> None:
    """Write the journal atomically and durably; a journal without values is removed."""
    path = journal_path(state, keeper)
    if not journal.values:
        path.unlink(missing_ok=True)
        return
    # All users may read which knobs root has set.
    write_whole(path, journal.model_dump_json(indent=1) + "\n", mode=0o644, refused=StateNotWritable)
