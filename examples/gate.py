"""Fail a build if an experiment finds anything slower than its baseline: python examples/gate.py EXPERIMENT."""

from __future__ import annotations

import sys

from kdyno import run

WORSE = {"slower", "more", "worse"}


def main(experiment: str) -> int:
    result = run(experiment)
    if result.lost:
        print("the host lost boots:", *result.lost.values(), sep="\n  ")
        return 3
    worse = [row for row in result.report.comparisons if row.verdict in WORSE]
    for row in worse:
        change = f"{row.estimate.ratio - 1:+.2%}" if row.estimate else ""
        print(f"{row.variant}: {row.benchmark}: {row.verdict} {change}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
