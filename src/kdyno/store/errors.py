"""What can go wrong with a store, and how a driver's error becomes one of these."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from kdyno.errors import InfrastructureError, UserError
from kdyno.state import DiskFull


class StoreUrlInvalid(UserError):
    message = "{url!r} doesn't name a store: {why}"
    hint = "use sqlite:///FILE or postgresql://USER@HOST/DATABASE"


class DriverMissing(UserError):
    message = "the driver for PostgreSQL is not installed"
    hint = "pip install 'kdyno[postgresql]'"


class NotAStore(UserError):
    message = "{where} is not a kdyno store: {why}"
    hint = "name another file; kdyno makes it if it doesn't exist"


class SchemaVersionUnknown(UserError):
    message = "the store {where} has schema version {found}; this kdyno reads and writes version {ours}"
    hint = "use the kdyno that wrote it, or name another store: kdyno makes a new one. Nothing was changed in this one"


class RunUnknown(UserError):
    message = "there is no run {prefix!r} in {where}"
    hint = "{nearest}"


class RunAmbiguous(UserError):
    message = "{prefix!r} is the start of {count} runs"
    hint = "give more digits: {nearest}"


class BootInconsistent(InfrastructureError):
    message = "boot {key} can't be recorded: {why}"
    hint = "the agent and kdyno disagree; please report this with the artefact of the agent's stream"


class StoreDamaged(InfrastructureError):
    message = "the store {where} is damaged: {why}"
    hint = "keep a copy of the file and try `sqlite3 FILE .recover | sqlite3 NEWFILE`, or name another store"


class StoreNotWritable(InfrastructureError):
    message = "can't write to the store {where}: {why}"
    hint = "make the file and its directory writable, or name another store"


class StoreUnreachable(InfrastructureError):
    message = "can't reach the store {where}: {why}"
    hint = "check the server and the URL, then run the same command again: what was finished is kept"


class StoreBusy(InfrastructureError):
    message = "the store {where} was locked by another program for a whole minute"
    hint = "end what holds it, then run the same command again: what was finished is kept"


class StoreFailed(InfrastructureError):
    message = "the store {where} failed: {why}"
    hint = "run the same command again: what was finished is kept"


SQLITE_ERRORS: dict[int, type[InfrastructureError | UserError]] = {
    sqlite3.SQLITE_NOTADB: NotAStore,
    sqlite3.SQLITE_CORRUPT: StoreDamaged,
    sqlite3.SQLITE_READONLY: StoreNotWritable,
    sqlite3.SQLITE_PERM: StoreNotWritable,
    sqlite3.SQLITE_BUSY: StoreBusy,
    sqlite3.SQLITE_CANTOPEN: StoreUnreachable,
}


@contextmanager
def errors_are_said(where: str) -> Iterator[None]:
    """Turn what a driver raises into an error with a message and a hint; IntegrityError passes."""
    try:
        yield
    except IntegrityError:
        raise
    except DBAPIError as error:
        raise _said(where, error) from error


def _said(where: str, error: DBAPIError) -> InfrastructureError | UserError:
    cause = error.orig
    why = " ".join(str(cause).split())
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the rest of the extended code only refines it
        if code == sqlite3.SQLITE_FULL:
            return DiskFull(path=where)
        return SQLITE_ERRORS.get(code, StoreFailed)(where=where, why=why)
    if getattr(cause, "sqlstate", None) == "53100":
        return DiskFull(path=where)
    if isinstance(error, OperationalError):
        return StoreUnreachable(where=where, why=why)
    return StoreFailed(where=where, why=why)
