"""The output of `kdyno coverage` as JSON."""

from __future__ import annotations

from kdyno.base.frozen import Frozen


class Totals(Frozen):
    """The amount of code, and of executed code."""

    lines: int
    """The number of lines with code."""
    executed: int
    partly: int
    """The number of executed lines whose code was not executed completely."""
    functions: int
    functions_executed: int
    bytes: int
    bytes_executed: int


class FunctionCoverage(Frozen):
    """A function of the source with all of its clones, without inlined copies."""

    name: str
    file: str
    """The source file; empty for assembler code, which has no lines."""
    line: int
    """The line where the function or its body begins; 0 if it isn't known."""
    calls: int
    """The number of executions of its first instruction."""
    bytes: int
    bytes_executed: int


class FileCoverage(Frozen):
    path: str
    totals: Totals


class DirectoryCoverage(Frozen):
    """A directory with all files below it."""

    path: str
    totals: Totals


class CoverageReport(Frozen):
    """`kdyno coverage --json`."""

    subject: str
    """The measured boot in words."""
    vmlinux: str
    """The SHA-256 of vmlinux."""
    regions: tuple[str, ...]
    """The benchmarks whose loops are counted."""
    contexts: tuple[str, ...]
    with_boot: bool
    """Whether code outside of the benchmarks' loops is counted, too."""
    totals: Totals
    directories: tuple[DirectoryCoverage, ...]
    files: tuple[FileCoverage, ...]
    functions: tuple[FunctionCoverage, ...]
    notes: tuple[str, ...] = ()
