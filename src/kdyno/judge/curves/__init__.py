"""Scaling curves: the sources of throughputs at several numbers of processes, and the report on them."""
