"""The store: runs, boots and samples in SQLite or PostgreSQL, and artefacts by hash in a directory."""
