"""A tracefile of lcov: what genhtml, editors and CI services read (geninfo(1), "Tracefile format")."""

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
"""The largest count that lcov's Perl and its readers take as a whole number."""


def tracefile(measured: ExecutedCode, root: Path, test: str = "") -> str:
    """The lines and functions of all files in the tree `root`; others, such as generated ones, are left out."""
    of_files: dict[str, list[FunctionCoverage]] = defaultdict(list)
    for function in measured.report.functions:
        of_files[function.file].append(function)
    return "".join(
        line + "\n"
        for number, path in enumerate(measured.lines.files)
        if not path.startswith(("/", GENERATED)) and (root / path).is_file()
        for line in _records(measured, number, root / path, of_files[path], test)
    )


def _records(
    measured: ExecutedCode, number: int, path: Path, functions: Iterable[FunctionCoverage], test: str
) -> Iterator[str]:
    lines = measured.lines.lines
    first, behind = np.searchsorted(lines["file"], [number, number + 1])
    own = lines[first:behind]
    if not len(own):
        return
    known = [function for function in functions if function.line]
    yield f"TN:{test}"
    yield f"SF:{path}"
    yield from (f"FN:{function.line},{function.name}" for function in known)
    yield from (f"FNDA:{min(function.calls, MOST)},{function.name}" for function in known)
    yield f"FNF:{len(known)}"
    yield f"FNH:{sum(function.calls > 0 for function in known)}"
    for line, count in zip(own["line"].tolist(), own["count"].tolist(), strict=True):
        yield f"DA:{line},{min(count, MOST)}"
    yield f"LF:{len(own)}"
    yield f"LH:{int((own['state'] != NEVER).sum())}"
    yield "end_of_record"
