"""The table of the paths in docs/silicon.md, which is that of the kernel (src/kdyno/data/paths/paths.tsv)."""

from __future__ import annotations

from doc_tables import DOCS, stale_table, table

from kdyno.measure.paths.table import KernelPath, paths

PAGE = DOCS / "silicon.md"


def paths_table() -> str:
    """Return a row for each path, in the order in which a kernel runs them."""
    header = ("group", "path", "one operation", "unit", "half")
    return table(header, [(path.group, path.name, *_cells(path)) for path in paths().values()])


def _cells(path: KernelPath) -> tuple[str, str, str]:
    unit = "cycles" if path.unit == "operation" else "B/cycle"
    return path.operation, unit, f"{path.half}{', loop of lib/' if path.kind == 'library' else ''}"


def stale(write: bool) -> list[str]:
    """Return what is wrong with the table; empty if it is written anew."""
    return stale_table(PAGE, "paths", paths_table(), write)
