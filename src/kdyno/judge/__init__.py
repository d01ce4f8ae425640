"""The judge: pure functions from samples to verdicts. What they mean is written in docs/statistics.md."""
