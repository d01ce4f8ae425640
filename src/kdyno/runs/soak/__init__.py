"""Soaks: one kernel, one boot, all loads at once for hours; what is judged of that, and a record to cite."""
