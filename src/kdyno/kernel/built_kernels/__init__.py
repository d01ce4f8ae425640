"""Kernels that somebody else built: read, with their modules, and kept as images like those that are built here."""
