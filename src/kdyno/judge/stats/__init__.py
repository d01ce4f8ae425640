"""The judge: pure functions from values to verdicts (docs/statistics.md); its sub-packages decide nothing."""
