"""The quality of profiles as text: the overlap of two profiles, and stale functions."""

from __future__ import annotations

from rich.text import Text

from kdyno.base import terminal
from kdyno.base.text import clean
from kdyno.profile.overlap import Overlap
from kdyno.profile.show import ROWS, say_left, say_line, table_of
from kdyno.profile.stale import Compared, Fate, Stale

FATES: dict[Fate, str] = {
    "same": "the same",
    "code": "changed code of the same size",
    "size": "another size",
    "gone": "no such function",
}
HOW: dict[Compared, str] = {
    "code": "by name and code",
    "sizes": "by name and size: the vmlinux that ran was not found (name it with --recorded FILE)",
    "names": "by name: a profile of clang does not describe the code",
}


def print_overlap(overlap: Overlap, *, top: int | None = None) -> None:
    console, top = terminal.console(), ROWS if top is None else top
    unit = "instructions" if overlap.kind == "records" else "samples"
    alike = [("functions", overlap.alike_by_functions), ("blocks", overlap.alike_by_blocks)]
    alike += [("lines (llvm-profdata)", overlap.alike_by_lines)]
    say_line(console, f"alike: {', '.join(f'{share:.1%} by {by}' for by, share in alike if share is not None)}")
    covered = [("functions", overlap.covered_by_functions), ("blocks", overlap.covered_by_blocks)]
    parts = ", ".join(f"{share:.1%} by {by}" for by, share in covered if share is not None)
    say_line(console, f"of B's {unit} A has seen: {parts}")
    say_line(
        console,
        f"functions: {overlap.functions_a:,} in A, {overlap.functions_b:,} in B, {overlap.functions_both:,} in both",
    )
    if overlap.same_vmlinux is False:
        say_line(console, "the records are of different kernels: compared by names of functions only", "yellow")
    if overlap.benchmarks:
        say_line(console, "")
        columns = ("seen by functions", "seen by blocks", "alike by functions")
        table = table_of(("benchmark of B", "left"), *((title, "right") for title in columns))
        for row in overlap.benchmarks:
            shares = (row.covered_by_functions, row.covered_by_blocks, row.alike)
            table.add_row(Text(clean(row.benchmark)), *map(_percent, shares))
        console.print(table)
    say_line(console, "")
    table = table_of(("A", "right"), ("B", "right"), ("function", "left"))
    for function in overlap.functions[:top]:
        table.add_row(_percent(function.a), _percent(function.b), Text(clean(function.function)))
    console.print(table)
    say_left(console, len(overlap.functions) - top, "functions")


def print_stale(stale: Stale, *, top: int | None = None) -> None:
    console, top = terminal.console(), ROWS if top is None else top
    unit = "instructions" if stale.kind == "record" else "samples"
    say_line(console, f"compared with vmlinux {stale.vmlinux[:12]}, {HOW[stale.compared]}")
    table = table_of(("functions", "right"), (f"of the {unit}", "right"), ("", "left"))
    for fate, words in FATES.items():
        if stale.functions[fate] or fate in ("same", "gone"):
            table.add_row(Text(f"{stale.functions[fate]:,}"), _percent(stale.shares[fate]), Text(words))
    console.print(table)
    if not stale.stale:
        return
    say_line(console, "")
    table = table_of((f"of the {unit}", "right"), ("bytes", "right"), ("now", "right"), ("function", "left"))
    for row in stale.stale[:top]:
        sizes = ("" if size is None else f"{size:,}" for size in (row.size, row.size_now))
        table.add_row(_percent(row.share), *map(Text, sizes), Text(f"{clean(row.function)}: {FATES[row.fate]}"))
    console.print(table)
    say_left(console, len(stale.stale) - top, "functions")


def _percent(share: float | None) -> Text:
    return Text("" if share is None else f"{share:.2%}")
