"""The first tables: fleet, workers, blocks, tasks and deaths."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "kdyno_fleet",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("created", MOMENT, nullable=False, server_default=sa.func.now()),
    )
    op.create_table(
        "kdyno_fleet_worker",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("offer", JSONB, nullable=False),
        sa.Column("package", sa.Text, nullable=False),
        sa.Column("seen", MOMENT, nullable=False, server_default=sa.func.now()),
    )
    op.create_table(
        "kdyno_fleet_block",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("host", sa.Text),
        sa.Column("released", sa.Boolean, nullable=False, server_default="false"),
    )
    op.create_table(
        "kdyno_fleet_task",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("block", sa.Text, sa.ForeignKey("kdyno_fleet_block.id")),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("spec", JSONB, nullable=False),
        sa.Column("state", sa.Text, nullable=False, server_default="open"),
        sa.Column("fence", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("worker", sa.Text),
        sa.Column("host", sa.Text),
        sa.Column("until", MOMENT),
        sa.Column("refusals", JSONB, nullable=False, server_default="{}"),
        sa.Column("result", JSONB),
        sa.Column("created", MOMENT, nullable=False, server_default=sa.func.now()),
        sa.Column("claimed", MOMENT),
        sa.Column("ended", MOMENT),
    )
    op.create_index("kdyno_fleet_task_waiting", "kdyno_fleet_task", ["run", "kind", "state", "position"])
    op.create_index("kdyno_fleet_task_subject", "kdyno_fleet_task", ["subject"])
    op.create_index("kdyno_fleet_task_block", "kdyno_fleet_task", ["block"])
    op.create_index("kdyno_fleet_task_worker", "kdyno_fleet_task", ["worker"])
    op.create_table(
        "kdyno_fleet_death",
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("seen", MOMENT, nullable=False, server_default=sa.func.now()),
    )
    op.create_index("ix_kdyno_fleet_death_subject", "kdyno_fleet_death", ["subject"])
