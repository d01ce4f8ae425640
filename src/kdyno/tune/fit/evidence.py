"""What ran of the code that each symbol gates: with the load, or while the kernel started. Pure but for reading files.

A boot without the load tells the two apart: in the model lane the same start executes each line as often again, so that
a line that ran more often with the load was needed by it.
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
"""By file and line: how often it was executed; lines with code alone."""


@dataclass(frozen=True)
class ExecutedPlace:
    """A line that ran, and the function that it is in."""

    file: str
    line: int
    function: str
    """Empty where that isn't known, as in headers."""

    @property
    def text(self) -> str:
        return f"{self.function}() of {self.file}" if self.function else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Evidence:
    """Of one symbol."""

    lines: int = 0
    """That have code, in its own files; or, if it has none, in conditional parts of others."""
    load: ExecutedPlace | None = None
    """What ran with the load more often than without, most of all."""
    start: ExecutedPlace | None = None
    """What ran while the kernel started, most of all."""


def line_counts(measured: Sequence[ExecutedCode]) -> Counts:
    """Of several boots of one kernel: the most executions of each line."""
    counts: dict[str, dict[int, int]] = {}
    for boot in measured:
        rows = boot.lines.lines
        for place, line, count in zip(
            rows["file"].tolist(), rows["line"].tolist(), rows["count"].tolist(), strict=True
        ):
            of_file = counts.setdefault(boot.lines.files[place], {})
            of_file[line] = max(count, of_file.get(line, 0))
    return counts


class Functions:
    """Finds the function that a line of a source file is in."""

    def __init__(self, functions: Iterable[FunctionCoverage]) -> None:
        begun: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for function in functions:
            if function.line:
                begun[function.file].append((function.line, function.name))
        self._begun = {file: sorted(of_file) for file, of_file in begun.items()}

    def at(self, file: str, line: int) -> str:
        """The one that begins nearest before; empty if there is none."""
        begun = self._begun.get(file, [])
        place = bisect_right(begun, (line, "\U0010ffff"))
        return begun[place - 1][1] if place else ""


def gathered(
    symbols: Collection[str],
    files_of: Mapping[str, Collection[str]],
    text_of: Callable[[str], Sequence[str]],
    load: Counts,
    start: Counts,
    functions: Functions,
) -> dict[str, Evidence]:
    """The evidence on each of the symbols that gates a line with code.

    `files_of` has the source files that each symbol adds, `text_of` gives the lines of one; `start` is of boots without
    the load. Of a symbol with files of its own only those count: its conditional lines elsewhere are mostly hooks,
    which run whether or not anything needs what they lead to.
    """
    gated: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for symbol, files in files_of.items():
        if symbol in symbols:
            gated[symbol].update((file, line) for file in files for line in load.get(file, ()))
    with_files = {symbol for symbol, lines in gated.items() if lines}
    for file, counts in load.items():
        for part in conditionals(text_of(file)):
            if part.symbol in symbols and part.symbol not in with_files:
                gated[part.symbol].update((file, line) for line in counts if part.first <= line <= part.last)
    return {symbol: _evidence(lines, load, start, functions) for symbol, lines in gated.items() if lines}


def _evidence(lines: Collection[tuple[str, int]], load: Counts, start: Counts, functions: Functions) -> Evidence:
    def without(file: str, line: int) -> int:
        return start.get(file, {}).get(line, 0)

    def first(executions: Callable[[str, int], int]) -> ExecutedPlace | None:
        """The line with the most executions, the first of them; None if there are none."""
        most = min(lines, key=lambda line: (-executions(*line), line))
        return ExecutedPlace(*most, functions.at(*most)) if executions(*most) > 0 else None

    return Evidence(
        lines=len(lines),
        load=first(lambda file, line: load[file][line] - without(file, line)),
        start=first(without) or first(lambda file, line: load[file][line]),
    )
