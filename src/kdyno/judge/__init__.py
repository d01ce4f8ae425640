"""From samples to verdicts: statistics, other people's files, the content of a report, and curves."""
