"""The command line: one file per verb, imported when that verb is used; and the same for Python programs, in api.py."""
