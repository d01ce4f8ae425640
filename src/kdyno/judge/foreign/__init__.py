"""Judging the measurements of others: joining the content of their files, and the limits of their data."""
