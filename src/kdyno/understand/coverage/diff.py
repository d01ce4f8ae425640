"""The difference of two boots' coverage of one source: lines of the first only, of the second only, and of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.kernel.image import ImageRecord
from kdyno.understand.coverage.measure import ExecutedCode


class OtherSource(UserError):
    message = "{first} and {second} were built from different sources, so that their lines cannot be compared"
    hint = "compare kernels of one source with the same patches"


class FunctionDifference(Frozen):
    """A function that only one of the two boots executed."""

    name: str
    file: str
    calls: tuple[int, int]
    bytes_executed: tuple[int, int]


class FileDifference(Frozen):
    path: str
    both: int
    """Lines that both executed."""
    only: tuple[int, int]
    """Lines that only the first executed, and only the second."""
    neither: int


class CoverageDifference(Frozen):
    """`kdyno coverage --diff --json`."""

    subjects: tuple[str, str]
    both: int
    only: tuple[int, int]
    neither: int
    files: tuple[FileDifference, ...]
    """The files that differ, the most lines first."""
    functions: tuple[FunctionDifference, ...]
    """The functions that differ, the most bytes first."""


Counts = Mapping[str, Mapping[int, tuple[int, int]]]
"""The counts of both boots by file and line."""


@dataclass(frozen=True)
class Difference:
    report: CoverageDifference
    counts: Counts


def require_one_source(first: ImageRecord | None, second: ImageRecord | None) -> None:
    """Raise OtherSource if two images were built from different trees. An image without a record is not checked."""
    if first and second and (first.source.identity, first.patches) != (second.source.identity, second.patches):
        raise OtherSource(first=first.key[:12], second=second.key[:12])


def difference(first: ExecutedCode, second: ExecutedCode) -> Difference:
    """Compare two boots. Lines with code in only one of the kernels count as never executed in the other."""
    counts = _counts(first, second)
    files = [_file(path, lines) for path, lines in sorted(counts.items())]
    report = CoverageDifference(
        subjects=(first.report.subject, second.report.subject),
        both=sum(file.both for file in files),
        only=(sum(file.only[0] for file in files), sum(file.only[1] for file in files)),
        neither=sum(file.neither for file in files),
        files=tuple(sorted((file for file in files if any(file.only)), key=lambda file: (-sum(file.only), file.path))),
        functions=_functions(first, second),
    )
    return Difference(report, counts)


def _counts(first: ExecutedCode, second: ExecutedCode) -> Counts:
    counts: dict[str, dict[int, tuple[int, int]]] = {}
    for place, code in enumerate((first, second)):
        lines = code.lines
        rows = lines.lines
        for number, line, count in zip(
            rows["file"].tolist(), rows["line"].tolist(), rows["count"].tolist(), strict=True
        ):
            counts_of_file = counts.setdefault(lines.files[number], {})
            pair = counts_of_file.get(line, (0, 0))
            counts_of_file[line] = (count, pair[1]) if place == 0 else (pair[0], count)
    return counts


def _file(path: str, lines: Mapping[int, tuple[int, int]]) -> FileDifference:
    executed = [(first > 0, second > 0) for first, second in lines.values()]
    return FileDifference(
        path=path,
        both=executed.count((True, True)),
        only=(executed.count((True, False)), executed.count((False, True))),
        neither=executed.count((False, False)),
    )


def _functions(first: ExecutedCode, second: ExecutedCode) -> tuple[FunctionDifference, ...]:
    sides = [
        {(function.file, function.name): function for function in code.report.functions} for code in (first, second)
    ]
    differing = []
    for file, name in sorted(sides[0].keys() | sides[1].keys()):
        pair = [side.get((file, name)) for side in sides]
        bytes_executed = tuple(function.bytes_executed if function else 0 for function in pair)
        if (bytes_executed[0] > 0) != (bytes_executed[1] > 0):
            calls = tuple(function.calls if function else 0 for function in pair)
            differing.append(
                FunctionDifference(
                    name=name,
                    file=file,
                    calls=(calls[0], calls[1]),
                    bytes_executed=(bytes_executed[0], bytes_executed[1]),
                )
            )
    return tuple(sorted(differing, key=lambda function: (-sum(function.bytes_executed), function.file, function.name)))
