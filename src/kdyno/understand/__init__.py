"""Explains kernels and measurements, and checks whether they can be trusted."""
