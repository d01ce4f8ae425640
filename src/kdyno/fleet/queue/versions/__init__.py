"""The migrations of the queue, one file for each change of its tables, for Alembic."""
