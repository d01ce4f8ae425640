"""Judging a run: from the boots on record to verdicts, with the notices that a reader must know."""
