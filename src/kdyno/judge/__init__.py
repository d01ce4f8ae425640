"""From samples to verdicts: statistics, other people's files, what a report says, and curves."""
