"""The code that neither a workload nor the boot executes: a smaller kernel could lack it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from kdyno.base.frozen import Frozen
from kdyno.understand.coverage.kbuild import files_of_symbols
from kdyno.understand.coverage.model import CoverageReport


class UnusedFunction(Frozen):
    name: str
    file: str
    bytes: int


class UnusedFile(Frozen):
    path: str
    functions: int
    bytes: int


class UnusedSymbol(Frozen):
    """A configuration symbol that is set, and whose objects were never executed."""

    name: str
    files: tuple[str, ...]
    """The files with code."""
    bytes: int


class Unused(Frozen):
    """`kdyno coverage --unused --json`; all by size, the largest first."""

    subject: str
    bytes: int
    """The bytes of all code."""
    bytes_executed: int
    bytes_of_functions: int
    """The bytes of functions that were never executed, without the unexecuted parts of other functions."""
    functions: tuple[UnusedFunction, ...]
    files: tuple[UnusedFile, ...]
    symbols: tuple[UnusedSymbol, ...]


def unused(report: CoverageReport, tree: Path, config: str | None) -> Unused:
    """Return the code that was never executed. Symbols that the configuration `config` doesn't set are left out.

    Functions of assembler code have no file, and belong to no symbol.
    """
    sizes: dict[str, int] = defaultdict(int)
    for function in report.functions:
        sizes[function.file] += function.bytes
    compiled = {path: size for path, size in sizes.items() if path}
    lines_run = {file.path for file in report.files if file.totals.executed}
    run = {function.file for function in report.functions if function.bytes_executed} | lines_run
    numbers = {file.path: file.totals.functions for file in report.files}
    idle = {path: size for path, size in compiled.items() if path not in run}
    functions = [function for function in report.functions if not function.bytes_executed]
    symbols = [
        UnusedSymbol(name=name, files=tuple(sorted(files)), bytes=sum(compiled[file] for file in files))
        for name, files in files_of_symbols(tree, compiled).items()
        if files <= idle.keys() and (config is None or f"\nCONFIG_{name}=y\n" in f"\n{config}\n")
    ]
    return Unused(
        subject=report.subject,
        bytes=report.totals.bytes,
        bytes_executed=report.totals.bytes_executed,
        bytes_of_functions=sum(function.bytes for function in functions),
        functions=tuple(
            UnusedFunction(name=function.name, file=function.file, bytes=function.bytes)
            for function in sorted(functions, key=lambda function: (-function.bytes, function.file, function.name))
        ),
        files=tuple(
            UnusedFile(path=path, functions=numbers.get(path, 0), bytes=size)
            for path, size in sorted(idle.items(), key=lambda item: (-item[1], item[0]))
        ),
        symbols=tuple(sorted(symbols, key=lambda symbol: (-symbol.bytes, symbol.name))),
    )
