"""Delegation: which compiler makes which object of a kernel, and the input of `ccd`, the compiler's delegate."""
