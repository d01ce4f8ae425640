"""The tables of a fleet's queue in PostgreSQL. Alembic makes them (versions/); a test compares the two.

fleet   ─ one row: whose database this is
worker  ─ one row for each `kdyno worker`: host, offer, version, when it was last seen
block   ─ the host of a block of the wall lane
task    ─ a build or a boot by key and attempt: its specification, its lease, its result
death   ─ a task whose worker ended with it
check   ─ what came of the last A/A of a host

All times are those of the database: a host whose clock is wrong neither takes a lease early nor keeps one too long.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB

tables = MetaData()
MOMENT = DateTime(timezone=True)

fleet = Table(
    "kdyno_fleet",
    tables,
    Column("id", Text, primary_key=True),
    Column("created", MOMENT, nullable=False, server_default=func.now()),
)

worker = Table(
    "kdyno_fleet_worker",
    tables,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("offer", JSONB, nullable=False),
    Column("package", Text, nullable=False),
    Column("seen", MOMENT, nullable=False, server_default=func.now()),
)

block = Table(
    "kdyno_fleet_block",
    tables,
    Column("id", Text, primary_key=True),
    Column("host", Text),
    Column("released", Boolean, nullable=False, server_default="false"),
)
"""`released`: a client has its results, so that no other host may carry out a part of it."""

task = Table(
    "kdyno_fleet_task",
    tables,
    Column("key", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("run", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("block", Text, ForeignKey(block.c.id)),
    Column("position", Integer, nullable=False),
    Column("spec", JSONB, nullable=False),
    Column("state", Text, nullable=False, server_default="open"),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    Column("worker", Text),
    Column("host", Text),
    Column("until", MOMENT),
    Column("refusals", JSONB, nullable=False, server_default="{}"),
    Column("result", JSONB),
    Column("created", MOMENT, nullable=False, server_default=func.now()),
    Column("claimed", MOMENT),
    Column("ended", MOMENT),
)
"""`state` is open, leased, done or quarantined. `fence` counts the leases: a commit names the one that it has."""
Index("kdyno_fleet_task_waiting", task.c.run, task.c.kind, task.c.state, task.c.position)
Index("kdyno_fleet_task_subject", task.c.subject, task.c.state)
Index("kdyno_fleet_task_block", task.c.block)
Index("kdyno_fleet_task_worker", task.c.worker)

death = Table(
    "kdyno_fleet_death",
    tables,
    Column("id", BigInteger, primary_key=True),
    Column("subject", Text, nullable=False, index=True),
    Column("key", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("worker", Text, nullable=False),
    Column("seen", MOMENT, nullable=False, server_default=func.now()),
)

host_check = Table(
    "kdyno_fleet_host_check",
    tables,
    Column("host", Text, primary_key=True),
    Column("passed", Boolean, nullable=False),
    Column("detail", Text, nullable=False),
    Column("checked", MOMENT, nullable=False, server_default=func.now()),
)
