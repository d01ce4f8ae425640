"""Reading what others measured: one small reader for each format, and what their data can't support."""
