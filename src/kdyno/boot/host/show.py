"""The facts of a host, and the result of setting its knobs, as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdyno.base.text import clean
from kdyno.boot.host.journal import Journal
from kdyno.boot.host.look import HostFact
from kdyno.boot.host.turn import Turn, Turned

MARKS = {"good": ("ok", "green"), "change": ("CHANGE", "bold yellow"), "plain": ("-", "")}
SETTABLE = {"yes": "--set", "by name": "--set {name}", "as root": "--set, as root", "no": "cannot be set here"}


def show_host(facts: Sequence[HostFact], journal: Journal | None, console: Console) -> None:
    """Print a table of facts, a line of absent ones, manual actions, and the next command."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in ("", "knob", "state", "why"):
        table.add_column(title)
    for fact in (fact for fact in facts if fact.status != "absent"):
        mark, style = MARKS[fact.status]
        table.add_row(Text(mark, style=style), Text(fact.name), Text(_state(fact)), Text(fact.why))
    console.print(table)
    if absent := [fact.name for fact in facts if fact.status == "absent"]:
        _line(console, f"not here: {', '.join(absent)}")
    for fact in facts:
        if fact.status == "change" and fact.mend:
            _line(console, f"{fact.name}: {fact.mend}")
    if any(fact.status == "change" and fact.settable in ("yes", "as root") for fact in facts):
        _line(console, "as root, `kdyno doctor --host --set` sets the knobs, and stores the old values")
    if journal is not None:
        count = len(journal.values)
        _line(
            console,
            f"files that --set has changed: {count}; `kdyno doctor --host --restore` restores the previous values",
        )


def _state(fact: HostFact) -> str:
    if fact.status != "change":
        return clean(fact.now)
    way = "" if fact.mend else f" ({SETTABLE[fact.settable].format(name=fact.name)})"
    return f"{clean(fact.now)}\nbetter: {clean(fact.wanted)}{way}"


def show_turned(turned: Turned, console: Console) -> None:
    """Print the result of each knob: set, restored or refused."""
    if turned.void:
        _line(console, "the host restarted after knobs were set: their old values are obsolete, and were removed")
    for name in turned.absent:
        _line(console, f"{name}: not here")
    groups: dict[tuple[str, ...], list[Turn]] = {}
    for turn in turned.turns:
        groups.setdefault((turn.knob, turn.outcome, turn.before, turn.wanted, turn.why), []).append(turn)
    for (knob, outcome, before, wanted, why), turns in groups.items():
        location = f"/{turns[0].path}" + (f" and {len(turns) - 1} more" if len(turns) > 1 else "")
        change = f"{before} -> {wanted}" if before != wanted else wanted
        result = f"{outcome}: {why}" if why else outcome
        _line(console, clean(f"{knob}: {change}: {result} ({location})"))


def _line(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)
