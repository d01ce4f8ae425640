"""Looking after a state directory and its store: the use of space, the removal of garbage, the export and import of
runs.
"""
