"""Judging a run: from the boots on record to verdicts, with what a reader must know of them."""
