"""An explanation as text: the verdict first, then the differences, the largest first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from kdyno.base.short_names import shorten_names
from kdyno.base.terminal import NARROWEST_NAME, STYLES, print_whole
from kdyno.base.text import clean
from kdyno.judge.stats.verdict import scoped_verdict
from kdyno.judge.verdicts.rows import VerdictRow
from kdyno.measure.cycles.budget import Budgets
from kdyno.understand.explain import budget_rows, rows
from kdyno.understand.explain.model import Explanation

BETTER, WORSE = "green", "red"
CYCLES = "cycles, modelled"
GAP = 2
"""The space between two columns of a table."""


def render(explanation: Explanation, verdict: VerdictRow, console: Console, top: int) -> None:
    """Print an explanation; at most `top` rows of each table."""
    show = _Shown(console)
    _heading(explanation, verdict, show)
    show.table("", ("", "baseline", "variant", "difference", ""), rows.totals(explanation))
    columns = ["event", "baseline", "variant", "difference", CYCLES]
    show.table("events, by their part in the difference", columns, rows.events(explanation, top), coloured=4)
    columns = ["function (its clones)", "baseline", "variant", "difference", CYCLES, "bytes"]
    title = "functions that gained or lost: instructions of their own code"
    show.table(title, columns, rows.functions(explanation, top), coloured=4)
    if explanation.inlining:
        show.line("")
        show.line("inlining", "bold")
    for inlining in explanation.inlining[:top]:
        show.line(rows.sentence(inlining, explanation.unit))
    if len(explanation.inlining) > top:
        show.line(f"and {len(explanation.inlining) - top} more", "dim")
    columns = ["", "baseline", "variant", "difference"]
    show.table("kernel code executed in the region", columns, rows.footprint(explanation), coloured=3)


def render_budgets(budgets: Budgets, console: Console) -> None:
    """Print budgets: all figures of one benchmark, or a line for each of several benchmarks and variants."""
    show = _Shown(console)
    names = budget_rows.variants(budgets.budgets)
    show.line(budget_rows.caption(budgets), "bold")
    show.line(f"from {budgets.boots}, median iteration; task and exception work, and user code")
    for note in budgets.notes:
        show.line(f"note: {note}", "bold yellow")
    if len({budget.benchmark for budget in budgets.budgets}) == 1:
        [budget, *_] = budgets.budgets
        title = f"{budget.benchmark}: cycles per {budget.unit}"
        columns = ["", *(text for name in names for text in (name, "%")), *["difference"] * (len(names) == 2)]
        show.table(title, columns, [*budget_rows.spending(budgets.budgets), *budget_rows.limits(budgets.budgets)])
    else:
        other_lines = f", of {names[0]}, and below each (→) of {names[1]}" if names[1:] else f", of {names[0]}"
        show.line(f"shares in %{other_lines}")
        show.table("", budget_rows.COLUMNS, budget_rows.lines(budgets.budgets), gap=1)
        show.line("")
        show.line(budget_rows.LEGEND, "dim")
    for sentence in budgets.missing:
        show.line(f"left out: {sentence}", "dim")


def _heading(explanation: Explanation, verdict: VerdictRow, show: _Shown) -> None:
    show.line(f"{explanation.benchmark}: {explanation.variant} against {explanation.baseline}", "bold")
    effect = f"{verdict.baseline} → {verdict.variant} {verdict.unit}, {verdict.effect}"
    judged = scoped_verdict(verdict.verdict, verdict.scope) if verdict.verdict else "none"
    show.line(f"verdict of the run: {judged}, {effect}", STYLES[verdict.verdict])
    show.line(verdict.sentence, "dim")
    show.line(f"explained from {explanation.boots}; per {explanation.unit}; task and exception work")
    show.line(f"cycles are {explanation.modelled}")
    for note in explanation.notes:
        show.line(f"note: {note}", "bold yellow")
    if explanation.counted == "edges":
        show.line("note: counted without caches, TLBs and branch predictor; --events all has them", "bold yellow")


class _Shown:
    """Prints plain text, whatever characters names contain."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def line(self, text: str, style: str = "") -> None:
        self.console.print(Text(clean(text), style=style))

    def table(
        self,
        title: str,
        columns: Sequence[str],
        cells: Sequence[rows.Row],
        coloured: int | None = None,
        gap: int = GAP,
    ) -> None:
        """Print a table.

        The first column is text, the others are figures; column `coloured` is green below 0 and red above.
        """
        if not cells:
            return
        self.line("")
        if title:
            self.line(title, "bold")
        table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="dim")
        widths = fit_columns(columns, cells, self.console.width, gap)
        names = shorten_names([clean(row[0]) for row in cells], widths[0])
        for number, (column, width) in enumerate(zip(columns, widths, strict=True)):
            justify: JustifyMethod = "right" if number else "left"
            table.add_column(shorten_names([column], width)[column], width=width, justify=justify, no_wrap=True)
        for row in cells:
            texts = [Text(names[clean(row[0])]), *(Text(clean(cell)) for cell in row[1:])]
            if coloured is not None and row[coloured] != "0":
                texts[coloured].stylize(BETTER if row[coloured].startswith("-") else WORSE)
            table.add_row(*texts)
        print_whole(self.console, table, sum(widths) + gap * (len(widths) - 1))


def fit_columns(columns: Sequence[str], cells: Sequence[rows.Row], width: int, gap: int) -> list[int]:
    """Return the widths of columns on a page of `width`: names are shortened first, then titles, but no figure."""
    by_column = list(zip(*cells, strict=True))
    smallest = [max(map(cell_len, texts)) for texts in by_column]
    widths = [max(cell_len(column), size) for column, size in zip(columns, smallest, strict=True)]
    smallest[0] = min(NARROWEST_NAME, widths[0])
    excess = sum(widths) + gap * (len(widths) - 1) - width
    first = min(max(0, excess), widths[0] - smallest[0])
    widths[0] -= first
    for _ in range(excess - first):
        spare = [size - least for size, least in zip(widths, smallest, strict=True)]
        if max(spare) == 0:
            break
        widths[spare.index(max(spare))] -= 1
    return widths
