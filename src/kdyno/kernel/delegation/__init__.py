"""Delegation: which compiler makes which object of a kernel, and what kdyno tells `ccd`, the compiler's delegate."""
