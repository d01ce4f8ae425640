"""Coverage: the lines, functions and files of a kernel's source that were executed, and their counts."""
