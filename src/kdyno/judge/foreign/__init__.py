"""Judging what others measured: readers of their files, what puts these together, and what their data can't support."""
