"""Checks of results: published statistics against their own means."""
