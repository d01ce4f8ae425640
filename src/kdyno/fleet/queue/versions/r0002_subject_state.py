"""An index of subjects with the states of their tasks: what is asked of a subject is how many are leased or done."""

from __future__ import annotations

from alembic import op

from kdyno.fleet.queue.versions import r0001_queue as before

revision = "0002"
down_revision = before.revision


def upgrade() -> None:
    """Make the index anew, with the state in it."""
    op.drop_index("kdyno_fleet_task_subject", "kdyno_fleet_task")
    op.create_index("kdyno_fleet_task_subject", "kdyno_fleet_task", ["subject", "state"])
