"""Scaling curves: where throughputs at several numbers of processes come from, and what is reported of them."""
