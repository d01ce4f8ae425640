"""The queue of a fleet in PostgreSQL: tasks with leases, workers, and what ended workers."""
