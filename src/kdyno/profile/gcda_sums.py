"""Sums of `.gcda` files, and the object summary from which gcc determines hot and cold code.

gcc uses counts only together with an object summary, which the files of a kernel lack. From gcc/predict.cc: a block
with at least sum_max / 10,000 executions (--param hot-bb-count-fraction) is hot, if it has more than `runs`; a block
with fewer than runs / 20 (--param unlikely-bb-count-fraction) is cold, and is placed with code that never ran.
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
"""The default of gcc's parameters, gcc 12 to 16: `gcc -Q --help=params`."""
HOTTEST = (WORD - 1) // HOT_FRACTION
"""The largest threshold: sum_max has 32 bits in a file."""


class OtherBuild(UserError):
    message = "{name} and {other} are from different builds: {what} differ"
    hint = "counts of different builds cannot be summed: take all snapshots of one kernel"


class NoSuchThreshold(UserError):
    message = "hot from {hot:,} executions and cold up to {cold:,} are not possible thresholds of gcc"
    hint = f"set hot to more than {COLD_FRACTION} times cold plus one, and at most {HOTTEST:,}"


def hot_summary(hot: int, cold: int = 0) -> tuple[int, int]:
    """Return runs and sum_max with which gcc takes code for hot from `hot` executions, and for cold up to `cold`.

    Raises NoSuchThreshold.
    """
    runs = COLD_FRACTION * cold + 1
    if not runs < hot <= HOTTEST:
        raise NoSuchThreshold(hot=hot, cold=cold)
    return runs, hot * HOT_FRACTION


def total(files: Iterable[GcovFile]) -> int:
    """Return the sum of all counters."""
    return sum(sum(function.arcs) for file in files for function in file.functions)


def require_counts(files: Sequence[GcovFile], name: str) -> None:
    """Raise NothingCounted if all counters of these files, from the training `name`, are 0."""
    counters.require_counts(np.concatenate([np.zeros(0, np.uint64), *map(counts_of, files)]), name)


def sum_files(parts: Sequence[tuple[GcovFile, float]], summary: tuple[int, int] | None = None) -> GcovFile:
    """Return the weighted sum of at least one file as a file with this summary.

    `counters.sum_counts` documents the rounding. Rounded counts are inconsistent at some branches, and so are those of
    a snapshot that was taken while functions ran: gcc accepts them with -fprofile-correction.

    Raises OtherBuild and CountTooLarge.
    """
    first = parts[0][0]
    require_same_build([file for file, _ in parts])
    counts = counters.sum_counts([(counts_of(file), weight) for file, weight in parts], first.name)
    return replace(with_counts(first, counts), summary=summary)


def require_same_build(files: Sequence[GcovFile]) -> None:
    """Raise OtherBuild unless the files are of one object of one build."""
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
