"""Opening the database of a store: the driver, SQLite's settings, and making or checking the tables.

A file of SQLite may be somebody else's, and can hold code: views, triggers and generated columns compute. A store has
none of these, so a file that has one is refused before anything else in it is read.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Row, create_engine, event, inspect, select, text
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.pool import StaticPool

from kdyno.base.files import sync
from kdyno.base.state import translate_disk_full
from kdyno.store import plain_json, schema
from kdyno.store.errors import (
    DriverMissing,
    JournalBeside,
    NoStore,
    NotAStore,
    SchemaVersionUnknown,
    StoreChanging,
    StoreDamaged,
    sqlite_is_busy,
    translate_driver_errors,
    translate_os_errors,
)
from kdyno.store.snapshot import companion_path, take
from kdyno.store.url import Access, StoreUrl, StoreUrlInvalid

BUSY_SECONDS = 60
"""Seconds that a writer waits for another one: two runs may share a store."""

LISTS = (schema.run, schema.variant, schema.cell, schema.boot, schema.benchmark, schema.selftest)
"""Tables that list the others' content: each is small, and no digest shows that a row or an index entry was lost."""
BEGIN = "kdyno_begin"
"""Execution option of connections to SQLite: how their transactions begin."""
MOST_BYTES = 1 << 26
"""Bytes of one value in SQLite, and of one row; the largest that kdyno writes, a variant with 1,000 images, has a
tenth.
"""
JOURNAL = "-journal"
"""The file with which SQLite takes back a change, if the store isn't kdyno's. It may name other files, which SQLite
removes.
"""
FILES = ("", "-wal", "-shm", JOURNAL)
"""Of SQLite's, what may lie beside the file."""
PLAIN = ("table", "index")
SHAPE = (
    'SELECT m.name, c.name, c.type, c."notnull", c.pk, c.hidden FROM sqlite_master m, pragma_table_xinfo(m.name) c '
    "WHERE m.type = 'table' AND m.name LIKE 'kdyno%' ORDER BY 1, c.cid",
    'SELECT m.name, i.origin, i."unique", i.partial, c.name, c."desc", c.coll, c.key '
    "FROM sqlite_master m, pragma_index_list(m.name) i, pragma_index_xinfo(i.name) c "
    "WHERE m.type = 'table' AND m.name LIKE 'kdyno%' ORDER BY 1, i.origin, i.name, c.seqno",
)
"""The form of a table: its columns, and the columns of its indexes."""


def connect(store: StoreUrl, access: Access = "make") -> Engine:
    """Return an engine whose database has the tables of this schema version.

    Reading changes neither the store nor a file next to it. Raise NoStore unless `access` lets it be made.
    """
    if store.path:
        return _connect_file(store, store.path, _mode_access(store.mode, access))
    engine = _engine(store, store.url, pool_pre_ping=True, connect_args={"connect_timeout": 10})
    with _disposed_if_it_fails(engine):
        with translate_driver_errors(store), engine.begin() as connection:
            is_there = _check_tables(connection, store.where)
        if not is_there:
            if access == "look":
                engine.dispose()
                return _empty(store)
            _require_may_make(store, access)
            with translate_driver_errors(store), writing(engine) as connection:
                connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('kdyno schema'))"))  # one at a time
                if not _check_tables(connection, store.where):
                    _make_tables(connection)
    return engine


def _connect_file(store: StoreUrl, path: Path, access: Access) -> Engine:
    _require_files(path)
    if not path.exists():
        if access == "look":
            return _empty(store)
        _require_may_make(store, access)
        make_file(store, path)
    if access in ("read", "look"):
        return _read_only(store, path)
    engine = _file_engine(store, URL.create("sqlite", database=str(path)), connect_args={"timeout": BUSY_SECONDS})
    with _disposed_if_it_fails(engine), translate_driver_errors(store):
        _require_store(engine, store)
        _set_wal(engine)
    return engine


def _read_only(store: StoreUrl, path: Path) -> Engine:
    with translate_os_errors(store):
        snapshot = take(path)
    engine = _file_engine(store, snapshot.url)

    def require_unchanged(_: object) -> None:
        if not snapshot.is_as_it_was:
            raise StoreChanging(where=store.where)

    for moment in ("begin", "commit", "handle_error"):  # a change meanwhile looks like damage
        event.listen(engine, moment, require_unchanged)
    event.listen(engine, "engine_disposed", lambda _: snapshot.close())
    with _disposed_if_it_fails(engine), translate_driver_errors(store):
        _require_store(engine, store)
    return engine


def _empty(store: StoreUrl) -> Engine:
    """A store without a run, in memory alone."""
    in_memory = URL.create("sqlite")
    engine = _file_engine(store, in_memory, poolclass=StaticPool, connect_args={"check_same_thread": False})
    with _disposed_if_it_fails(engine), writing(engine) as connection:
        _make_tables(connection)
    return engine


def _file_engine(store: StoreUrl, url: URL, **options: Any) -> Engine:
    engine = _engine(store, url, json_deserializer=plain_json.load, **options)
    _prepare_sqlite(engine)
    return engine


def _engine(store: StoreUrl, url: URL, **options: Any) -> Engine:
    try:
        return create_engine(url, hide_parameters=True, **options)
    except ModuleNotFoundError as error:
        raise DriverMissing() from error
    except (ArgumentError, TypeError, ValueError) as error:
        raise StoreUrlInvalid(url=store.where, why="its options are not understood") from error


def _mode_access(mode: str | None, access: Access) -> Access:
    if mode == "ro" and access != "look":
        return "read"
    return "change" if mode == "rw" and access == "make" else access


def _require_may_make(store: StoreUrl, access: Access) -> None:
    if access != "make":
        raise NoStore(where=store.where)


@contextmanager
def _disposed_if_it_fails(engine: Engine) -> Iterator[None]:
    try:
        yield
    except BaseException:
        engine.dispose()
        raise


def _require_store(engine: Engine, store: StoreUrl) -> None:
    with engine.begin() as connection:
        if not _check_tables(connection, store.where):
            raise NotAStore(where=store.where, why="it is empty")
        for table in LISTS:
            for (found,) in connection.exec_driver_sql(f"PRAGMA integrity_check({table.name})"):
                if found != "ok":
                    raise StoreDamaged(where=store.where, why=" ".join(str(found).split()))


def writing(engine: Engine) -> Any:
    """Yield one transaction that writes: committed at the end of the block, rolled back when it raises."""
    # A transaction that reads first and writes later would fail at once when another one has written in between.
    return engine.execution_options(**{BEGIN: "BEGIN IMMEDIATE"}).begin()


def _require_files(path: Path) -> None:
    """Raise NotAStore for files that SQLite would wait for, or read without end: pipes and devices; and
    JournalBeside.
    """
    for suffix in FILES:
        file = companion_path(path, suffix)
        try:
            is_file = stat.S_ISREG(file.lstat().st_mode)
        except OSError:  # a journal may go at any moment; SQLite says what else is wrong
            continue
        if not is_file:  # a link, too: SQLite's files next to it would go elsewhere
            raise NotAStore(where=f"{path}{suffix}", why="it is not a regular file")
        if suffix == JOURNAL:
            raise JournalBeside(where=path, journal=file)


def make_file(store: StoreUrl, path: Path) -> None:
    """Make a store that doesn't exist: it gets its name when it is whole, unless another kdyno was faster."""
    with translate_os_errors(store), translate_disk_full(path):
        with tempfile.TemporaryDirectory(prefix=f".{path.name[:40]}-", dir=path.parent) as directory:
            whole = Path(directory) / "store"
            engine = _file_engine(store, URL.create("sqlite", database=str(whole)))
            with _disposed_if_it_fails(engine), translate_driver_errors(store):
                with writing(engine) as connection:
                    _make_tables(connection)
                _set_wal(
                    engine
                )  # last: content of a -wal gets into the file at the end, or not, and nothing reports which
            engine.dispose()
            _take_name(whole, path)
        sync(path.parent)


def _take_name(whole: Path, path: Path) -> None:
    try:
        with suppress(FileExistsError):
            os.link(whole, path)
    except OSError:  # some file systems have no links
        if not os.path.lexists(path):
            whole.rename(path)


def _prepare_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def settings(connection: Any, _: object) -> None:
        connection.isolation_level = None  # no implicit BEGIN: `begin` below says it
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
        connection.execute("PRAGMA trusted_schema = OFF")  # a function that the file calls must do no harm
        connection.execute("PRAGMA cell_size_check = ON")  # report damage where it is, not where it leads
        connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if statement := connection.get_execution_options().get(BEGIN, "BEGIN"):
            connection.exec_driver_sql(statement)


def _set_wal(engine: Engine) -> None:
    """Let readers and one writer work at once. The file stores this setting; it can't be set within a transaction.

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


def _check_tables(connection: Connection, where: str) -> bool:
    """Return whether the tables are there. Raise an error if they are of another version or another program."""
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
    """Raise NotAStore for other tables: without its keys and indexes a store would take for ever, and a computed column
    can be costly.
    """
    theirs, ours = _shape(connection), _our_shape()
    for table in sorted(theirs.keys() | ours.keys()):
        if theirs.get(table) != ours.get(table):
            raise NotAStore(where=where, why=f"its table {table} does not have kdyno's form")


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
    """Return the columns of each table and those of its indexes, as SQLite understands them."""
    parts: dict[str, list[Row[Any]]] = defaultdict(list)
    for query in SHAPE:
        for row in connection.exec_driver_sql(query):
            parts[row[0]].append(row)
    return parts


def _make_tables(connection: Connection) -> None:
    schema.tables.create_all(connection)
    connection.execute(schema.meta.insert().values(version=schema.VERSION))
