"""How far the cycle model can be believed on code that it wasn't fitted to: kernels, natively and modelled."""
