"""Opening the database of a store: the driver, SQLite's settings, and making or checking the tables."""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError

from kdyno.store import schema
from kdyno.store.errors import (
    DriverMissing,
    NotAStore,
    SchemaVersionUnknown,
    StoreUrlInvalid,
    errors_are_said,
)

BUSY_SECONDS = 60
"""How long a writer waits for another one: two runs may share a store."""

BEGIN = "kdyno_begin"
"""Execution option of connections to SQLite: how their transactions begin."""


def parse(url: str) -> URL:
    """Return the URL with the driver that kdyno uses for it, or raise StoreUrlInvalid."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise StoreUrlInvalid(url=url, why="it isn't a URL") from error
    if parsed.drivername == "sqlite" and parsed.database:
        return parsed
    if parsed.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    shown = parsed.render_as_string(hide_password=True)
    raise StoreUrlInvalid(url=shown, why="only SQLite files and PostgreSQL are known")


def connect(url: URL) -> Engine:
    """Return an engine whose database has the tables of this schema version; they are made if there are none."""
    where = shown(url)
    try:
        engine = create_engine(url, connect_args=_connect_args(url), pool_pre_ping=url.drivername != "sqlite")
    except ModuleNotFoundError as error:
        raise DriverMissing() from error
    if url.drivername == "sqlite":
        _prepare_sqlite(engine)
    try:
        with errors_are_said(where):
            with engine.begin() as connection:
                present = _checked(connection, where)
            if not present:
                if url.drivername == "sqlite":
                    _set_wal(engine)
                with writing(engine) as connection:
                    _make(connection, where)
    except BaseException:
        engine.dispose()
        raise
    return engine


def shown(url: URL) -> str:
    """How messages name the store: the file, or the URL without its password."""
    return str(url.database) if url.drivername == "sqlite" else url.render_as_string(hide_password=True)


def writing(engine: Engine) -> Any:
    """One transaction that writes: committed at the end of the block, rolled back when it raises."""
    # A transaction that reads first and writes later would fail at once when another one has written in between.
    return engine.execution_options(**{BEGIN: "BEGIN IMMEDIATE"}).begin()


def _connect_args(url: URL) -> dict[str, Any]:
    return {"timeout": BUSY_SECONDS} if url.drivername == "sqlite" else {"connect_timeout": 10}


def _prepare_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def settings(connection: Any, _: object) -> None:
        connection.isolation_level = None  # no implicit BEGIN: `begin` below says it
        connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if statement := connection.get_execution_options().get(BEGIN, "BEGIN"):
            connection.exec_driver_sql(statement)


def _set_wal(engine: Engine) -> None:
    """Let readers and one writer work at once. The file remembers it; it can't be set within a transaction."""
    with engine.execution_options(**{BEGIN: None}).connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode = WAL")


def _checked(connection: Connection, where: str) -> bool:
    """Return whether the tables are there; raise if they are of another version or another program."""
    present = inspect(connection).get_table_names()
    if schema.meta.name in present:
        found = connection.execute(select(schema.meta.c.version)).scalar()
        if found != schema.VERSION:
            raise SchemaVersionUnknown(where=where, found=found, ours=schema.VERSION)
        return True
    if present and connection.dialect.name == "sqlite":
        raise NotAStore(where=where, why="it is the SQLite file of another program")
    return False


def _make(connection: Connection, where: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('kdyno schema'))"))  # one maker at a time
    if not _checked(connection, where):
        schema.tables.create_all(connection)
        connection.execute(schema.meta.insert().values(version=schema.VERSION))
