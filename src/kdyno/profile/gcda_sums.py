"""What was counted between two snapshots of `.gcda` files, how they add up, and what gcc then calls hot and cold.

gcc compiles by counts only together with an object summary, which the files of a kernel lack. From gcc/predict.cc:
what has at least sum_max / 10,000 executions (--param hot-bb-count-fraction) is hot, if it has more than `runs`; what
has fewer than runs / 20 (--param unlikely-bb-count-fraction) is cold, and lies with what never ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, chain, pairwise

import numpy as np

from kdyno.base.errors import UserError
from kdyno.profile import counters
from kdyno.profile.counters import Counts
from kdyno.profile.gcda import WORD, GcovFile

HOT_FRACTION = 10_000
COLD_FRACTION = 20
"""gcc's parameters unless it is told otherwise, gcc 12 to 16: `gcc -Q --help=params`."""
HOTTEST = (WORD - 1) // HOT_FRACTION
"""The highest threshold: sum_max has 32 bits in a file."""


class OtherBuild(UserError):
    message = "{name} is of another build than {other}: {what} differ"
    hint = "counts of two builds don't add up: train one kernel, and take all snapshots of it"


class NoSuchThreshold(UserError):
    message = "gcc can't be told that code is hot from {hot:,} executions on and cold up to {cold:,}"
    hint = f"hot is more than {COLD_FRACTION} times cold plus one, and {HOTTEST:,} at most"


def hot_summary(hot: int, cold: int = 0) -> tuple[int, int]:
    """Runs and sum_max by which gcc calls hot what has at least `hot` executions, and cold what has up to `cold`.

    Raises NoSuchThreshold.
    """
    runs = COLD_FRACTION * cold + 1
    if not runs < hot <= HOTTEST:
        raise NoSuchThreshold(hot=hot, cold=cold)
    return runs, hot * HOT_FRACTION


def total(files: Iterable[GcovFile]) -> int:
    """The sum of all counters."""
    return sum(sum(function.arcs) for file in files for function in file.functions)


def require_counts(files: Sequence[GcovFile], name: str) -> None:
    """Raise NothingCounted if all counters of these files are 0, in training `name`."""
    counters.require_counts(np.concatenate([np.zeros(0, np.uint64), *map(counts_of, files)]), name)


def added(parts: Sequence[tuple[GcovFile, float]], summary: tuple[int, int] | None = None) -> GcovFile:
    """At least one file, each times its weight, as one that has this summary.

    `counters.added` says how counts are rounded. Rounded counts don't add up at every branch, nor do those of a
    snapshot that was taken amid functions: gcc takes them with -fprofile-correction. Raises OtherBuild, CountTooLarge.
    """
    first = parts[0][0]
    require_same_build([file for file, _ in parts])
    counts = counters.added([(counts_of(file), weight) for file, weight in parts], first.name)
    return replace(with_counts(first, counts), summary=summary)


def require_same_build(files: Sequence[GcovFile]) -> None:
    """Raise OtherBuild unless these are of one object of one build."""
    first = files[0]
    for file in files[1:]:
        for what, differs in {
            "the compilers": first.version != file.version,
            "the stamps": first.stamp != file.stamp,
            "the functions": first.functions is not file.functions and _shape(first) != _shape(file),
        }.items():
            if differs:
                raise OtherBuild(name=file.name or "a file", other=first.name or "another", what=what)


def _shape(file: GcovFile) -> list[tuple[int, int, int, int]]:
    return [
        (function.ident, function.lineno_checksum, function.cfg_checksum, len(function.arcs))
        for function in file.functions
    ]


def counts_of(file: GcovFile) -> Counts:
    return np.array(list(chain.from_iterable(function.arcs for function in file.functions)), np.uint64)


def with_counts(file: GcovFile, counts: Counts) -> GcovFile:
    ranges = pairwise(accumulate((len(function.arcs) for function in file.functions), initial=0))
    flat = tuple(counts.tolist())
    functions = zip(file.functions, ranges, strict=True)
    return replace(
        file,
        functions=tuple(replace(function, arcs=flat[start:end]) for function, (start, end) in functions),
        summary=None,
    )
