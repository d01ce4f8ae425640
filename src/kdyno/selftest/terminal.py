"""A self-test as text."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdyno.text import limit, percent
from kdyno.verdicts.selftest import Rate, SelfTest


def render(result: SelfTest, console: Console) -> None:
    """Print what was found: over all benchmarks first, then each."""
    console.print(
        Text(f"A/A in the {result.lane} lane: {result.experiments} experiments of {result.blocks} blocks", "bold")
    )
    console.print(Text(f"run {result.run}, one image under two names, a seed of its own for each boot"))
    console.print(
        Text(
            f"experiments that called any benchmark faster or slower: {result.family_wise.text}; "
            f"at most {limit(result.alpha)} % should",
            "green" if result.family_wise.rate <= result.alpha else "red",
        )
    )
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("benchmark", no_wrap=True, overflow="ellipsis")
    for title in (f"p < {result.alpha:g}", "95 % of rate", "false verdicts", "intervals hold 1", "spread", "sees"):
        table.add_column(title, justify="right", no_wrap=True)
    for tested in result.benchmarks:
        table.add_row(
            tested.benchmark,
            _share(tested.false_positives),
            f"{100 * tested.false_positives.low:.1f} to {100 * tested.false_positives.high:.1f}",
            str(tested.false_verdicts.count),
            _share(tested.covered),
            f"{percent(tested.spread)} %",
            f"{percent(tested.detectable)} %" if tested.detectable is not None else "",
        )
    console.print(table)
    console.print(
        Text(
            "p < alpha: before adjustment and regardless of the margin, so about alpha is right; 0 where all values "
            "agree exactly. spread: standard deviation of the log-ratios. sees: the smallest effect that "
            f"{result.planned} blocks see with 80 % power",
            "dim",
        )
    )


def _share(rate: Rate) -> str:
    return f"{100 * rate.rate:.1f} %"
