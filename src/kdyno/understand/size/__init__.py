"""The sizes of a kernel's parts, and their differences between two kernels."""
