"""The command line: one file per verb, imported when that verb is used."""
