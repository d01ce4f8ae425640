"""A self-test as text."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdyno.base.text import format_count, limit, percent
from kdyno.judge.stats.verdict import DIFFERENT
from kdyno.judge.verdicts.selftest import Rate, SelfTest


def render(result: SelfTest, console: Console) -> None:
    """Print the result: all benchmarks together first, then each."""
    if result.kind == "aa":
        _render_aa(result, console)
    else:
        _render_layouts(result, console)


def _render_aa(result: SelfTest, console: Console) -> None:
    console.print(
        Text(f"A/A in the {result.lane} lane: {result.experiments} experiments of {result.blocks} blocks", "bold")
    )
    console.print(Text(f"run {result.run}, one image under two names, a seed of its own for each boot"))
    console.print(
        Text(
            f"experiments that called any benchmark different: {result.family_wise.text}; "
            f"at most {limit(result.alpha)} % should",
            "green" if result.family_wise.rate <= result.alpha else "red",
        )
    )
    table = _table(f"p < {result.alpha:g}", "95 % of rate", "false verdicts", "intervals hold 1", "spread", "sees")
    for tested in result.benchmarks:
        table.add_row(
            tested.benchmark,
            _share(tested.false_positives),
            _interval(tested.false_positives),
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
            f"is called different in 80 % of runs of {result.planned} blocks, where values differ at all",
            "dim",
        )
    )


def _render_layouts(result: SelfTest, console: Console) -> None:
    console.print(
        Text(f"link order in the {result.where}: {result.experiments} experiments of {result.blocks} blocks", "bold")
    )
    console.print(Text(f"run {result.run}, one kernel, linked in two other orders for each experiment"))
    console.print(Text(f"experiments that called any benchmark different: {result.family_wise.text}"))
    verdicts = [tested.link_order.verdict for tested in result.benchmarks if tested.link_order]
    different = sum(verdict in DIFFERENT for verdict in verdicts)
    console.print(
        Text(
            f"the same boots as one run with `layouts = {result.experiments}`: "
            f"{different} of {format_count(len(verdicts), 'benchmark')} called different"
        )
    )
    table = _table("false verdicts", "95 % of rate", "holds 1", "spread", "largest", "sees", "by layouts")
    for tested in result.benchmarks:
        assert tested.link_order is not None  # a self-test with layouts has it
        table.add_row(
            tested.benchmark,
            _share(tested.false_verdicts),
            _interval(tested.false_verdicts),
            _share(tested.covered),
            f"{percent(tested.link_order.spread)} %",
            f"{percent(tested.link_order.largest)} %",
            f"{percent(tested.detectable)} %" if tested.detectable is not None else "",
            tested.link_order.verdict or "",
        )
    console.print(table)
    console.print(
        Text(
            "false verdicts: true of two images, false of the kernel, which is the same. holds 1: intervals that hold "
            "the truth. spread: standard deviation of the log-ratio of two links; largest: effect of a pair. sees: the "
            f"smallest effect that is called different in 80 % of runs of {result.planned} blocks, each with a layout "
            "of its own. by layouts: the verdict of all boots together if the layout is what is replicated",
            "dim",
        )
    )


def _table(*titles: str) -> Table:
    """Return a table whose rows are benchmarks."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("benchmark", no_wrap=True, overflow="ellipsis")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _share(rate: Rate) -> str:
    return f"{100 * rate.rate:.1f} %"


def _interval(rate: Rate) -> str:
    return f"{100 * rate.low:.1f} to {100 * rate.high:.1f}"
