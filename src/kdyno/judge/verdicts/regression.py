"""The result of --fail-on-regression: whether a variant got worse, or could not be measured. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Literal

from kdyno.base.errors import UserError
from kdyno.judge.stats.verdict import WORSE
from kdyno.judge.verdicts.model import RunReport

Finding = Literal["regression", "untestable", "none"]
"""`untestable`: a variant never boots, or a requested benchmark can't be compared; it says nothing of speed."""
KNOWN_SHOWN = 10
"""Benchmarks that a message names."""


class NoSuchBenchmark(UserError):
    message = "{option} names {name}, which is not a benchmark of this workload"
    hint = "did you mean {near}? it measures {known}"


def require_known(names: Sequence[str], benchmarks: Sequence[str], option: str = "--fail-on-regression") -> None:
    """Raise NoSuchBenchmark unless each name means a benchmark, so that a misspelling doesn't pass."""
    for name in names:
        if not any(means([name], benchmark) for benchmark in benchmarks):
            near = difflib.get_close_matches(name, benchmarks, n=1, cutoff=0)
            more = f" and {len(benchmarks) - KNOWN_SHOWN} more" if len(benchmarks) > KNOWN_SHOWN else ""
            raise NoSuchBenchmark(
                option=option, name=name, near=near[0], known=", ".join(benchmarks[:KNOWN_SHOWN]) + more
            )


def find_regression(report: RunReport, names: Sequence[str]) -> Finding:
    """Return whether a variant is worse in one of these benchmarks, or in any if none is named.

    A name is a benchmark's, or a test's for all of its benchmarks. A kernel that fails a KUnit suite isn't judged: it
    counts as worse in general, but says nothing about a named benchmark. A worse variant counts more than one that
    can't be measured.
    """
    meant = [comparison for comparison in report.comparisons if not names or means(names, comparison.benchmark)]
    if any(comparison.verdict in WORSE for comparison in meant):
        return "regression"
    failed, ok = ({boot.variant for boot in report.boots if boot.status == status} for status in ("failed", "ok"))
    if failed - ok or (names and any(comparison.verdict is None for comparison in meant)):
        return "untestable"
    return "regression" if not names and any(not check.passed for check in report.checks) else "none"


def means(names: Sequence[str], benchmark: str) -> bool:
    """Return whether one of the names is that of a benchmark, or of its test."""
    return any(benchmark == name or benchmark.startswith(f"{name}.") for name in names)
