"""The store: runs, boots and samples in SQLite or PostgreSQL, artefacts by hash beside it."""
