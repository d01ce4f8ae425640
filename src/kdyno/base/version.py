"""The version of kdyno, which images, runs and reports record."""

__version__ = "0.1.0"
