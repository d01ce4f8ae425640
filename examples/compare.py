"""Compare two kernels, print each verdict, and write the report: python examples/compare.py BASELINE OTHER TEST..."""

from __future__ import annotations

import sys

from kdyno import ab


def main(baseline: str, other: str, *tests: str) -> None:
    result = ab(baseline, other, tests=tests, blocks=3)
    for row in result.report.comparisons:
        change = f"{row.estimate.ratio - 1:+.2%}" if row.estimate else ""
        print(f"{row.benchmark:28} {change:>9}  {row.verdict}")
    result.write_html("compare.html")


if __name__ == "__main__":
    main(*sys.argv[1:])
