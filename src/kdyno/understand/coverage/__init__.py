"""Which lines, functions and files of a kernel's source were executed, and how often."""
