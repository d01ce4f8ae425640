"""What came of the A/A of each host."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kdyno.fleet.queue.versions import r0002_subject_state as before

revision = "0003"
down_revision = before.revision


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "kdyno_fleet_host_check",
        sa.Column("host", sa.Text, primary_key=True),
        sa.Column("passed", sa.Boolean, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("checked", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
    )
