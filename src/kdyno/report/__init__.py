"""The report: assembled once from the store and the judge, then rendered as text, JSON, CSV or HTML."""
