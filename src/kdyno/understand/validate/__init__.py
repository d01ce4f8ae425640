"""Validates the cycle model on code that it wasn't fitted to: kernels, natively and modelled."""
