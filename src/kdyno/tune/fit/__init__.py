"""Smaller kernels for a load: which symbols of a configuration it needs, and a fragment that leaves out the rest."""
