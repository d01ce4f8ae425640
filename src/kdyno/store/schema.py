"""The tables of the store. Nothing here is particular to SQLite or to PostgreSQL.

meta ─ version of this schema
run ─┬─ variant ── cell    (block, position, layout, key of the boot that fills it)
     └─ selftest           (what the run's A/A experiments came to)
boot ─┬─ described         (which benchmarks, in the agent's order)
      ├─ sample            (benchmark, iteration, elapsed and work or a value)
      └─ outcome           (benchmark, unsupported or broken, why)
benchmark                  (a name with one meaning: unit, direction, description)
triage                     (what people say of a change in the history; the newest entry counts)

A boot is known by the key of what decides it, and belongs to no run: runs share boots through their cells.
Runs, boots and self-tests have the digest of all that belongs to them; see digests.py.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

from kdyno.store.plain_json import require_plain

VERSION = 10
"""Raised by every change to a table; stores of another version are refused with a message."""


class UnreadableValue:
    """Stands for a value in a store that kdyno can't have written."""


class _Read(TypeDecorator[Any]):
    """A value; if its text is invalid, an Unreadable is read in its place, and whoever checks the row reports it."""

    impl: TypeEngine[Any] | type[TypeEngine[Any]] = Text
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: Any) -> Any:
        process = super().result_processor(dialect, coltype) or _as_it_is

        def read(value: Any) -> Any:
            try:
                return process(value)
            except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
                return UnreadableValue()

        return read


def _as_it_is(value: Any) -> Any:
    return value


class Json(_Read):
    """Plain JSON."""

    impl = JSON
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        require_plain(value)
        return value


class Utc(_Read):
    """A moment; kept without a zone, in UTC, because SQLite knows none."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.replace(tzinfo=UTC)


class YesNo(_Read):
    """Yes or no; SQLite has 1 and 0 for them, and would take any value for one of the two."""

    impl = Boolean
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: Any) -> Any:  # noqa: ARG002
        return lambda value: bool(value) if value in (0, 1) else UnreadableValue()


Key = BigInteger().with_variant(Integer, "sqlite")
"""A number given by the database; SQLite counts up only columns called INTEGER, which have 64 bits there."""

tables = MetaData()

meta = Table("kdyno_meta", tables, Column("version", Integer, primary_key=True))

run = Table(
    "kdyno_run",
    tables,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("created", Utc, nullable=False),
    Column("experiment", Text, nullable=False),
    Column("baseline", Text, nullable=False),
    Column("blocks", Integer, nullable=False),
    Column("layouts", Integer, nullable=False),
    Column("stopped_at", Integer),
    Column("seed", BigInteger, nullable=False),
    Column("lane", Text, nullable=False),
    Column("machine", Json, nullable=False),
    Column("host", Json, nullable=False),
    Column("notices", Json, nullable=False),
    Column("margin", Double, nullable=False),
    Column("alpha", Double, nullable=False),
    Column("correction", Text, nullable=False),
    Column("looks", Integer, nullable=False),
    Column("kdyno", Text, nullable=False),
    Column("sha256", Text, nullable=False),
)

variant = Table(
    "kdyno_variant",
    tables,
    Column("run", ForeignKey(run.c.id), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("ordinal", Integer, nullable=False),
    Column("recipe", Json, nullable=False),
    Column("images", Json, nullable=False),
)

cell = Table(
    "kdyno_cell",
    tables,
    Column("run", Text, primary_key=True),
    Column("variant", Text, primary_key=True),
    Column("block", Integer, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("layout_index", Integer, nullable=False),
    Column("key", Text, nullable=False, index=True),
    ForeignKeyConstraint(["run", "variant"], [variant.c.run, variant.c.name]),
)

boot = Table(
    "kdyno_boot",
    tables,
    Column("id", Key, primary_key=True),
    Column("key", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("started", Utc, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("ready_seconds", Double),
    Column("conditions", Json, nullable=False),
    Column("kernel", Text),
    Column("command", Json, nullable=False),
    Column("host", Text, nullable=False),
    Column("console", Text),
    Column("stream", Text),
    Column("pmu", Text),
    Column("counters", Text),
    Column("sha256", Text, nullable=False),
    UniqueConstraint("key", "attempt"),
)

benchmark = Table(
    "kdyno_benchmark",
    tables,
    Column("id", Key, primary_key=True),
    Column("name", Text, nullable=False),
    Column("test", Text, nullable=False),
    Column("unit", Text, nullable=False),
    Column("direction", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("is_part", YesNo, nullable=False),
    UniqueConstraint("name", "test", "unit", "direction", "description", "is_part"),
)

described = Table(
    "kdyno_described",
    tables,
    Column("boot", ForeignKey(boot.c.id), primary_key=True),
    Column("benchmark", ForeignKey(benchmark.c.id), primary_key=True),
    Column("ordinal", Integer, nullable=False),
)

sample = Table(
    "kdyno_sample",
    tables,
    Column("boot", ForeignKey(boot.c.id), primary_key=True),
    Column("benchmark", ForeignKey(benchmark.c.id), primary_key=True),
    Column("iteration", BigInteger, primary_key=True),
    Column("elapsed", BigInteger),
    Column("work", BigInteger),
    Column("value", Double),
)

selftest = Table(
    "kdyno_selftest",
    tables,
    Column("run", ForeignKey(run.c.id), primary_key=True),
    Column("created", Utc, nullable=False),
    Column("found", Json, nullable=False),
    Column("sha256", Text, nullable=False),
)

outcome = Table(
    "kdyno_outcome",
    tables,
    Column("boot", ForeignKey(boot.c.id), primary_key=True),
    Column("benchmark", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("why", Text, nullable=False),
)

triage = Table(
    "kdyno_triage",
    tables,
    Column("id", Key, primary_key=True),
    Column("axis", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("written", Utc, nullable=False),
)
