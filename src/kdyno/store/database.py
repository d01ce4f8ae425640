"""Opening the database of a store: the driver, SQLite's settings, and making or checking the tables.

A file of SQLite may be somebody else's, and is a program in part: views, triggers and generated columns compute. A
store has none of these, so a file that has one is refused before anything else of it is read.
"""

from __future__ import annotations

import sqlite3
import stat
import time
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Row, create_engine, event, inspect, select, text
from sqlalchemy.exc import ArgumentError, OperationalError

from kdyno.store import schema
from kdyno.store.errors import DriverMissing, NotAStore, SchemaVersionUnknown, errors_are_said, sqlite_is_busy
from kdyno.store.url import StoreUrl, StoreUrlInvalid

BUSY_SECONDS = 60
"""How long a writer waits for another one: two runs may share a store."""

BEGIN = "kdyno_begin"
"""Execution option of connections to SQLite: how their transactions begin."""
MOST_BYTES = 1 << 26
"""Of one value in SQLite, and of one row; the largest that kdyno writes, a variant with 1,000 images, has a tenth."""
FILES = ("", "-wal", "-shm", "-journal")
"""Of SQLite's, what may lie beside the file."""
PLAIN = ("table", "index")
SHAPE = (
    'SELECT m.name, c.name, c.type, c."notnull", c.pk, c.hidden FROM sqlite_master m, pragma_table_xinfo(m.name) c '
    "WHERE m.type = 'table' AND m.name LIKE 'kdyno%' ORDER BY 1, c.cid",
    'SELECT m.name, i.origin, i."unique", i.partial, c.name, c."desc", c.coll, c.key '
    "FROM sqlite_master m, pragma_index_list(m.name) i, pragma_index_xinfo(i.name) c "
    "WHERE m.type = 'table' AND m.name LIKE 'kdyno%' ORDER BY 1, i.origin, i.name, c.seqno",
)
"""What a table is: its columns, and the columns of its indexes."""


def connect(store: StoreUrl) -> Engine:
    """Return an engine whose database has the tables of this schema version; they are made if there are none."""
    if store.path:
        _require_files(store.path)
    try:
        engine = create_engine(
            store.url, connect_args=_connect_args(store), pool_pre_ping=not store.path, hide_parameters=True
        )
    except ModuleNotFoundError as error:
        raise DriverMissing() from error
    except (ArgumentError, TypeError, ValueError) as error:
        raise StoreUrlInvalid(url=store.where, why="its options are not understood") from error
    if store.path:
        _prepare_sqlite(engine)
    try:
        with errors_are_said(store):
            with engine.begin() as connection:
                present = _checked(connection, store.where)
            if not present:
                if store.path:
                    _set_wal(engine)
                with writing(engine) as connection:
                    _make(connection, store.where)
    except BaseException:
        engine.dispose()
        raise
    return engine


def writing(engine: Engine) -> Any:
    """One transaction that writes: committed at the end of the block, rolled back when it raises."""
    # A transaction that reads first and writes later would fail at once when another one has written in between.
    return engine.execution_options(**{BEGIN: "BEGIN IMMEDIATE"}).begin()


def _require_files(path: Path) -> None:
    """Raise NotAStore for what SQLite would wait for, or read without end: pipes and devices."""
    for beside in FILES:
        file = path.with_name(path.name + beside)
        try:
            is_file = stat.S_ISREG(file.stat().st_mode)
        except OSError:  # a journal may go at any moment; SQLite says what else is wrong
            continue
        if not is_file:
            raise NotAStore(where=file, why="it is no regular file")


def _connect_args(store: StoreUrl) -> dict[str, Any]:
    return {"timeout": BUSY_SECONDS} if store.path else {"connect_timeout": 10}


def _prepare_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def settings(connection: Any, _: object) -> None:
        connection.isolation_level = None  # no implicit BEGIN: `begin` below says it
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
        connection.execute("PRAGMA trusted_schema = OFF")  # what the file computes may call no function that does harm
        connection.execute("PRAGMA cell_size_check = ON")  # see damage where it is, not where it leads
        connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if statement := connection.get_execution_options().get(BEGIN, "BEGIN"):
            connection.exec_driver_sql(statement)


def _set_wal(engine: Engine) -> None:
    """Let readers and one writer work at once. The file remembers it; it can't be set within a transaction.

    Of two that set it at once, each would wait for the other. So SQLite tells one of them at once that the file is
    locked, without the usual wait (its documentation of sqlite3_busy_handler says why), and that one tries again.
    """
    until = time.monotonic() + BUSY_SECONDS
    with engine.execution_options(**{BEGIN: None}).connect() as connection:
        while True:
            try:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
                return
            except OperationalError as error:
                if not sqlite_is_busy(error) or time.monotonic() > until:
                    raise
            time.sleep(0.01)


def _checked(connection: Connection, where: str) -> bool:
    """Return whether the tables are there; raise if they are of another version or another program."""
    is_file = connection.dialect.name == "sqlite"
    if is_file:
        _require_nothing_that_computes(connection, where)
    present = inspect(connection).get_table_names()
    if schema.meta.name in present:
        version = connection.execute(select(schema.meta.c.version)).scalar()
        if version != schema.VERSION:
            raise SchemaVersionUnknown(where=where, version=version, ours=schema.VERSION)
        if is_file:
            _require_same_shape(connection, where)
        return True
    if present and is_file:
        raise NotAStore(where=where, why="it is the SQLite file of another program")
    return False


def _require_nothing_that_computes(connection: Connection, where: str) -> None:
    for kind, name, made in connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master"):
        if kind not in PLAIN or (kind == "table" and not str(made).upper().startswith("CREATE TABLE")):
            raise NotAStore(where=where, why=f"it holds the {kind} {name!r}, of a kind that kdyno never makes")


def _require_same_shape(connection: Connection, where: str) -> None:
    """Without its keys and indexes a store would take for ever, and a computed column takes what it likes."""
    theirs, ours = _shape(connection), _our_shape()
    for table in sorted(theirs.keys() | ours.keys()):
        if theirs.get(table) != ours.get(table):
            raise NotAStore(where=where, why=f"its table {table} is not as kdyno makes it")


@cache
def _our_shape() -> dict[str, list[Row[Any]]]:
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            schema.tables.create_all(connection)
            return _shape(connection)
    finally:
        engine.dispose()


def _shape(connection: Connection) -> dict[str, list[Row[Any]]]:
    """By table: its columns and those of its indexes, as SQLite understands them."""
    parts: dict[str, list[Row[Any]]] = defaultdict(list)
    for query in SHAPE:
        for row in connection.exec_driver_sql(query):
            parts[row[0]].append(row)
    return parts


def _make(connection: Connection, where: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('kdyno schema'))"))  # one maker at a time
    if not _checked(connection, where):
        schema.tables.create_all(connection)
        connection.execute(schema.meta.insert().values(version=schema.VERSION))
