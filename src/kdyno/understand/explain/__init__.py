"""Explains the difference of a benchmark between two kernels: compares two PMU records region by region."""
