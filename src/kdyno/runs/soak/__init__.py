"""Soaks: one boot of one kernel with all loads at once for hours, its verdict, and a record to cite."""
