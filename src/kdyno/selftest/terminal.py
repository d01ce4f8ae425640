"""A self-test as text."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdyno.text import limit, percent
from kdyno.verdicts.selftest import Rate, SelfTest


def render(found: SelfTest, console: Console) -> None:
    """Print what was found: over all benchmarks first, then each."""
    console.print(
        Text(f"A/A in the {found.lane} lane: {found.experiments} experiments of {found.blocks} blocks", "bold")
    )
    console.print(Text(f"run {found.run}, one image under two names, a seed of its own for each boot"))
    console.print(
        Text(
            f"experiments that called any benchmark faster or slower: {found.family_wise.text}; "
            f"at most {limit(found.alpha)} % should",
            "green" if found.family_wise.rate <= found.alpha else "red",
        )
    )
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("benchmark", no_wrap=True, overflow="ellipsis")
    for title in (f"p < {found.alpha:g}", "95 % of rate", "false verdicts", "intervals hold 1", "spread", "sees"):
        table.add_column(title, justify="right", no_wrap=True)
    for each in found.benchmarks:
        table.add_row(
            each.benchmark,
            _share(each.false_positives),
            f"{100 * each.false_positives.low:.1f} to {100 * each.false_positives.high:.1f}",
            str(each.false_verdicts.count),
            _share(each.covered),
            f"{percent(each.spread)} %",
            f"{percent(each.detectable)} %" if each.detectable is not None else "",
        )
    console.print(table)
    console.print(
        Text(
            "p < alpha: before adjustment and regardless of the margin, so about alpha is right; 0 where all values "
            "agree exactly. spread: standard deviation of the log-ratios. sees: the smallest effect that "
            f"{found.planned} blocks see with 80 % power",
            "dim",
        )
    )


def _share(rate: Rate) -> str:
    return f"{100 * rate.rate:.1f} %"
