"""How large the parts of a kernel are, and how two kernels differ in that."""
