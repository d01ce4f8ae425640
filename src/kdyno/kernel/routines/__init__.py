"""Library routines of a kernel: their families and candidates, and the patches by which a source takes one."""
