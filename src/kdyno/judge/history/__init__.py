"""The values of all runs as lines over kernels, and the points where they change."""
