"""Writes a tracefile of lcov, the format of genhtml, editors and CI services (geninfo(1), "Tracefile format")."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from kdyno.understand.coverage.line_table import GENERATED
from kdyno.understand.coverage.lines import NEVER
from kdyno.understand.coverage.measure import ExecutedCode
from kdyno.understand.coverage.model import FunctionCoverage

MOST = (1 << 63) - 1
"""The largest count that lcov's Perl and its readers accept as a whole number."""


def tracefile(code: ExecutedCode, root: Path, test: str = "") -> str:
    """Return the lines and functions of all files in the tree `root`; other files, such as generated ones, are left
    out."""
    functions_by_file: dict[str, list[FunctionCoverage]] = defaultdict(list)
    for function in code.report.functions:
        functions_by_file[function.file].append(function)
    return "".join(
        line + "\n"
        for number, path in enumerate(code.lines.files)
        if not path.startswith(("/", GENERATED)) and (root / path).is_file()
        for line in _records(code, number, root / path, functions_by_file[path], test)
    )


def _records(
    code: ExecutedCode, number: int, path: Path, functions: Iterable[FunctionCoverage], test: str
) -> Iterator[str]:
    lines = code.lines.lines
    first, end = np.searchsorted(lines["file"], [number, number + 1])
    file_lines = lines[first:end]
    if not len(file_lines):
        return
    located_functions = [function for function in functions if function.line]
    yield f"TN:{test}"
    yield f"SF:{path}"
    yield from (f"FN:{function.line},{function.name}" for function in located_functions)
    yield from (f"FNDA:{min(function.calls, MOST)},{function.name}" for function in located_functions)
    yield f"FNF:{len(located_functions)}"
    yield f"FNH:{sum(function.calls > 0 for function in located_functions)}"
    for line, count in zip(file_lines["line"].tolist(), file_lines["count"].tolist(), strict=True):
        yield f"DA:{line},{min(count, MOST)}"
    yield f"LF:{len(file_lines)}"
    yield f"LH:{int((file_lines['state'] != NEVER).sum())}"
    yield "end_of_record"
