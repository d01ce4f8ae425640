"""Rendering a report as text, JSON, CSV or HTML."""
