"""Checks of results: published statistics against their own means, and this judge against simulated truths."""
