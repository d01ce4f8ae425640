"""The errors of a store, and how a driver's error becomes one of these."""

from __future__ import annotations

import errno
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.extras import way_to_install_extra
from kdyno.base.state import DiskFull, translate_disk_full
from kdyno.store.url import StoreUrl, hide_secrets


class DriverMissing(UserError):
    message = "the driver for PostgreSQL is not installed"
    hint = f"run: {way_to_install_extra('postgresql')}"


class NotAStore(UserError):
    message = "{where} is not a kdyno store: {why}"
    hint = "name another file; kdyno makes it if it doesn't exist"


class NoStore(UserError):
    message = "there is no store {where}"
    hint = "check the name; `kdyno run` and `kdyno store import` make a store"


class JournalBeside(UserError):
    message = "{where} is not used: {journal} lies next to it, and no store of kdyno's has one"
    hint = (
        "if you trust it, run: sqlite3 {where} 'PRAGMA journal_mode = WAL'; SQLite then follows it, and it may name "
        "other files"
    )


class SchemaVersionUnknown(UserError):
    message = "the store {where} has schema version {version}; this kdyno reads and writes version {ours}"
    hint = "use the kdyno that wrote it, or name another store: kdyno makes a new one. Nothing was changed in this one"


class RunUnknown(UserError):
    message = "there is no run {prefix!r} in {where}"
    hint = "{nearest}"


class RunAmbiguous(UserError):
    message = "{prefix!r} is the start of {count} runs"
    hint = "give more digits: {nearest}"


class NoSuchVariant(UserError):
    message = "run {run} has no variant {name}"
    hint = "did you mean {near}? variants: {known}"


class RunThere(UserError):
    message = "run {run} is in {where} already"
    hint = "nothing was changed; `kdyno show {run}` shows it"


class BootDiffers(UserError):
    message = "boot {key} is in {where} already, with other measurements than the one that is to be added"
    hint = (
        "import into a store of its own: --store URL; one of the two boots was changed, or one key stands for two "
        "things"
    )


class RecordCorrupt(InfrastructureError):
    message = "the store {where} holds a record that kdyno never writes: {record}: {why}"
    hint = (
        "restore it from a copy: a disk or something else changed it, or it is somebody else's; without a copy, "
        "`kdyno store export` takes other runs out of it, and lost runs can be repeated with a new store"
    )


class RecordRefused(InfrastructureError):
    message = "the store {where} does not accept a record: {why}"
    hint = "name another store, kdyno makes it: this one's content contradicts the record, so something else changed it"


class BootInconsistent(InfrastructureError):
    message = "boot {key} can't be recorded: {why}"
    hint = "please report this with the artefact of the agent's stream: the agent and kdyno disagree"


class StoreDamaged(InfrastructureError):
    message = "the store {where} is damaged: {why}"
    hint = (
        "restore it from a copy; without one, `sqlite3 FILE .recover | sqlite3 NEWFILE` makes a store of the readable "
        "parts: runs that are not whole in it are refused, and can be repeated"
    )


class StoreNotWritable(InfrastructureError):
    message = "can't write to the store {where}: {why}"
    hint = "make the file and its directory writable, or name another store"


class StoreUnreachable(InfrastructureError):
    message = "can't reach the store {where}: {why}"
    hint = "check the server and the URL, then run the same command again: what was finished is kept"


class StoreBusy(InfrastructureError):
    message = "the store {where} was locked by another program for a whole minute"
    hint = "end the program that holds it, then run the same command again: what was finished is kept"


class StoreChanging(InfrastructureError):
    message = "the store {where} was written to while it was read"
    hint = "run the same command again"


class StoreFailed(InfrastructureError):
    message = "the store {where} failed: {why}"
    hint = "run the same command again: what was finished is kept"


NOT_TEXT = 255
"""The key for the error without a code, which Python raises for a text that is not UTF-8."""
SQLITE_ERRORS: dict[int, type[InfrastructureError | UserError]] = {
    sqlite3.SQLITE_NOTADB: NotAStore,
    sqlite3.SQLITE_CORRUPT: StoreDamaged,
    sqlite3.SQLITE_TOOBIG: StoreDamaged,
    NOT_TEXT: StoreDamaged,
    sqlite3.SQLITE_READONLY: StoreNotWritable,
    sqlite3.SQLITE_PERM: StoreNotWritable,
    sqlite3.SQLITE_BUSY: StoreBusy,
    sqlite3.SQLITE_CANTOPEN: StoreUnreachable,
}


MAYBE_FULL = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
"""The error that SQLite also reports on a full disk, if it writes to another file than the store itself."""
PROBE_BYTES = 1 << 16


@contextmanager
def translate_driver_errors(store: StoreUrl) -> Iterator[None]:
    """Turn a driver's errors into errors with a message and a hint."""
    try:
        yield
    except DBAPIError as error:
        raise _translate_error(store, error) from error
    except UnicodeDecodeError as error:  # SQLite's message about a damaged file may quote it
        raise StoreDamaged(where=store.where, why="it holds text that is not UTF-8") from error


@contextmanager
def translate_os_errors(store: StoreUrl) -> Iterator[None]:
    """Turn the system's errors about a file that isn't SQLite's yet into errors with a message and a hint."""
    try:
        yield
    except OSError as error:
        kind = StoreNotWritable if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else StoreUnreachable
        raise kind(where=store.where, why=error.strerror) from error


def _translate_error(store: StoreUrl, error: DBAPIError) -> InfrastructureError | UserError:
    cause, store_name = error.orig, store.where
    why = hide_secrets(" ".join(str(cause).split()), store)
    if isinstance(error, IntegrityError):
        return RecordRefused(where=store_name, why=why)
    if isinstance(cause, sqlite3.Error):
        code = _sqlite_code(cause)
        if code == sqlite3.SQLITE_FULL or (code in MAYBE_FULL and store.path and _disk_is_full(store.path.parent)):
            return DiskFull(path=store_name)
        return SQLITE_ERRORS.get(code, StoreFailed)(where=store_name, why=why)
    if getattr(cause, "sqlstate", None) == "53100":
        return DiskFull(path=store_name)
    if isinstance(error, OperationalError):
        return StoreUnreachable(where=store_name, why=why)
    return StoreFailed(where=store_name, why=why)


def sqlite_is_busy(error: DBAPIError) -> bool:
    """Return whether another connection holds the file's lock."""
    return isinstance(error.orig, sqlite3.Error) and _sqlite_code(error.orig) == sqlite3.SQLITE_BUSY


def _sqlite_code(error: sqlite3.Error) -> int:
    without_code = NOT_TEXT if isinstance(error, sqlite3.OperationalError) else 0
    return getattr(error, "sqlite_errorcode", without_code) & 0xFF  # the rest of the code only refines it


def _disk_is_full(directory: Path) -> bool:
    """Return whether the disk is full by writing to it: the free space says nothing of quotas and inodes."""
    try:
        with translate_disk_full(directory), tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"\0" * PROBE_BYTES)
            file.flush()
    except DiskFull:
        return True
    except OSError:
        return False
    return False
