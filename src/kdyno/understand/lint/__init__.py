"""Files of a kernel -> findings: what compilers did wrong in objects and linked kernels."""
