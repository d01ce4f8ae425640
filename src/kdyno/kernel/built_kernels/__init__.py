"""Kernels that were built elsewhere: read, with their modules, and kept as images like those that are built here."""
