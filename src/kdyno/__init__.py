"""kdyno: a dynamometer for Linux kernels."""

__version__ = "0.1.0"
