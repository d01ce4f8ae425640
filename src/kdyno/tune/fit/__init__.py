"""Smaller kernels for a load: the symbols of a configuration that it needs, and a fragment without the others."""
