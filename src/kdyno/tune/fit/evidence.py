"""The evidence on symbols: which of their code the load ran, or the start of the kernel. Pure except for reading files.

A boot without the load separates the two: in the model lane the start executes each line equally often in both boots.
The load needs the lines that ran more often with it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kdyno.tune.fit.conditions import conditionals
from kdyno.understand.coverage.measure import ExecutedCode
from kdyno.understand.coverage.model import FunctionCoverage

Counts = Mapping[str, Mapping[int, int]]
"""The number of executions by file and line, for lines with code."""


@dataclass(frozen=True)
class ExecutedPlace:
    """A line that ran, and the function that it is in."""

    file: str
    line: int
    function: str
    """The function; empty if it isn't known, as in headers."""

    @property
    def text(self) -> str:
        return f"{self.function}() of {self.file}" if self.function else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Evidence:
    """The evidence on one symbol."""

    lines: int = 0
    """The number of lines with code in its own files or, without such files, in conditional parts of others."""
    load: ExecutedPlace | None = None
    """The line with the most additional executions by the load; None without one."""
    start: ExecutedPlace | None = None
    """The line with the most executions during the start; None without one."""


def line_counts(measured: Sequence[ExecutedCode]) -> Counts:
    """Return the most executions of each line in several boots of one kernel."""
    counts: dict[str, dict[int, int]] = {}
    for boot in measured:
        rows = boot.lines.lines
        for place, line, count in zip(
            rows["file"].tolist(), rows["line"].tolist(), rows["count"].tolist(), strict=True
        ):
            counts_of_file = counts.setdefault(boot.lines.files[place], {})
            counts_of_file[line] = max(count, counts_of_file.get(line, 0))
    return counts


class Functions:
    """Finds the function that a line of a source file is in."""

    def __init__(self, functions: Iterable[FunctionCoverage]) -> None:
        functions_by_file: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for function in functions:
            if function.line:
                functions_by_file[function.file].append((function.line, function.name))
        self._begun = {file: sorted(starts) for file, starts in functions_by_file.items()}

    def at(self, file: str, line: int) -> str:
        """Return the last function that begins at or before the line; empty without one."""
        begun = self._begun.get(file, [])
        place = bisect_right(begun, (line, "\U0010ffff"))
        return begun[place - 1][1] if place else ""


def gather_evidence(
    symbols: Collection[str],
    files_of: Mapping[str, Collection[str]],
    text_of: Callable[[str], Sequence[str]],
    load: Counts,
    start: Counts,
    functions: Functions,
) -> dict[str, Evidence]:
    """Return the evidence on each of the symbols that gates a line with code.

    `files_of` has the source files that each symbol adds, `text_of` returns the lines of a file. `start` is of boots
    without the load. If a symbol has its own files, only these count: its conditional lines elsewhere are mostly hooks,
    which run even if nothing needs the code behind them.
    """
    gated: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for symbol, files in files_of.items():
        if symbol in symbols:
            gated[symbol].update((file, line) for file in files for line in load.get(file, ()))
    symbols_with_files = {symbol for symbol, lines in gated.items() if lines}
    for file, counts in load.items():
        for part in conditionals(text_of(file)):
            if part.symbol in symbols and part.symbol not in symbols_with_files:
                gated[part.symbol].update((file, line) for line in counts if part.first <= line <= part.last)
    return {symbol: _evidence(lines, load, start, functions) for symbol, lines in gated.items() if lines}


def _evidence(lines: Collection[tuple[str, int]], load: Counts, start: Counts, functions: Functions) -> Evidence:
    def start_executions(file: str, line: int) -> int:
        return start.get(file, {}).get(line, 0)

    def find_most(executions: Callable[[str, int], int]) -> ExecutedPlace | None:
        """Return the first line with the most executions; None without executions."""
        most = min(lines, key=lambda line: (-executions(*line), line))
        return ExecutedPlace(*most, functions.at(*most)) if executions(*most) > 0 else None

    return Evidence(
        lines=len(lines),
        load=find_most(lambda file, line: load[file][line] - start_executions(file, line)),
        start=find_most(start_executions) or find_most(lambda file, line: load[file][line]),
    )
