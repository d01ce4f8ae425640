"""The terminal output of `kdyno validate --library`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.base.text import number
from kdyno.understand.validate.effects import sign_lines, summary, worst
from kdyno.understand.validate.library_build import NOT_ALIKE
from kdyno.understand.validate.library_compare import Figure, LibraryReport, PairOfSets

WORST = 10
"""The number of ratios with the wrong sign that are shown."""
NOISY = 0.1
"""The median spread between passes above which the host counts as noisy."""


def lines(report: LibraryReport) -> list[str]:
    """Return the report as lines of text."""
    return [
        *_cycles(report),
        "",
        *_pairs(report.pairs),
        "",
        *_noise(report.figures),
        f"all pairs: {summary(report.agreement)}",
        *sign_lines(report.agreement),
        f"by instructions alone: {summary(report.by_instructions)}",
        *sign_lines(report.by_instructions),
        "",
        *_worst(report),
        *(f"note: {note}" for note in report.notes),
        f"functions of {report.source}, {report.model}",
        *(f"not as in a kernel: {difference}" for difference in NOT_ALIKE),
    ]


def _cycles(report: LibraryReport) -> list[str]:
    """Return the lines with native and modelled cycles of each load."""
    sets = [figure.options for figure in report.figures if figure.load == report.figures[0].load]
    rows = [f"{'cycles: native/modelled':<23} " + " ".join(f"{options:>13}" for options in sets)]
    for start in range(0, len(report.figures), len(sets)):
        row = report.figures[start : start + len(sets)]
        cells = (f"{number(figure.native)}/{number(figure.modelled)}" for figure in row)
        rows.append(f"{row[0].load:<23} " + " ".join(f"{cell:>13}" for cell in cells))
    return rows


def _pairs(pairs: Sequence[PairOfSets]) -> list[str]:
    width = max(len(f"{pair.one} / {pair.other}") for pair in pairs)
    rows = [f"{'ratio of cycles':<{width}}     n  correlation  median error  clear  wrong sign  by instructions"]
    for pair in pairs:
        result = pair.agreement
        correlation = "" if result.pearson is None else f"{result.pearson:.2f}"
        rows.append(
            f"{f'{pair.one} / {pair.other}':<{width}} {result.effects:>5} {correlation:>12} "
            f"{100 * result.median_error:>11.1f} % {result.clear:>6} {result.sign_errors:>11} "
            f"{pair.by_instructions.sign_errors:>16}"
        )
    return rows


def _noise(figures: Sequence[Figure]) -> list[str]:
    spread = sorted(figure.spread for figure in figures)
    median = spread[len(spread) // 2]
    rows = [f"native passes differ by {100 * median:.1f} % (median), at most {100 * spread[-1]:.0f} %"]
    if median > NOISY:
        rows.append("this host is noisy: more passes make better minima")
    return rows


def _worst(report: LibraryReport) -> list[str]:
    wrong = worst([ratio.effect() for ratio in report.ratios], WORST)
    if not wrong:
        return []
    rows = ["where the model's sign is most wrong:"]
    return rows + [f"  {effect.name}: native {effect.measured:.3f}, modelled {effect.modelled:.3f}" for effect in wrong]
