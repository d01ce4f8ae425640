"""Searches that build and judge many kernels: delegation by function, and a configuration for a load."""
