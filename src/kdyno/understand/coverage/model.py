"""What `kdyno coverage` prints as JSON."""

from __future__ import annotations

from kdyno.base.frozen import Frozen


class Totals(Frozen):
    """How much code there is, and how much of it was executed."""

    lines: int
    """That have code."""
    executed: int
    partly: int
    """Of those executed: not all of their code was."""
    functions: int
    functions_executed: int
    bytes: int
    bytes_executed: int


class FunctionCoverage(Frozen):
    """A function of the source with all of its clones, as far as it wasn't inlined."""

    name: str
    file: str
    """What it was compiled with; empty for assembler code, which has no lines."""
    line: int
    """Where it begins, or where its body does; 0 if that isn't known."""
    calls: int
    """Executions of its first instruction."""
    bytes: int
    bytes_executed: int


class FileCoverage(Frozen):
    path: str
    totals: Totals


class DirectoryCoverage(Frozen):
    """A directory with all below it."""

    path: str
    totals: Totals


class CoverageReport(Frozen):
    """`kdyno coverage --json`."""

    subject: str
    """What was looked at, in words."""
    vmlinux: str
    """SHA-256."""
    regions: tuple[str, ...]
    """Benchmarks whose loops are counted."""
    contexts: tuple[str, ...]
    with_boot: bool
    """Whether what ran outside of benchmarks' loops is counted, too."""
    totals: Totals
    directories: tuple[DirectoryCoverage, ...]
    files: tuple[FileCoverage, ...]
    functions: tuple[FunctionCoverage, ...]
    notes: tuple[str, ...] = ()
