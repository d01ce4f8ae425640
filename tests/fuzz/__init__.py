"""Readers of foreign bytes, given bytes that are not what they should be."""
