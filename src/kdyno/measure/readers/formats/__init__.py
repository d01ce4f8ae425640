"""One module for each format of files, and the registry that has a row for each."""
