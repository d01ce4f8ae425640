"""An index of subjects with the states of their tasks: what is asked of a subject is how many are leased or done."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the index anew, with the state in it."""
    op.drop_index("kdyno_fleet_task_subject", "kdyno_fleet_task")
    op.create_index("kdyno_fleet_task_subject", "kdyno_fleet_task", ["subject", "state"])
