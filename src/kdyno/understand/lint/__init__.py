"""Lints of kernel files: mistakes of compilers in objects and linked kernels."""
