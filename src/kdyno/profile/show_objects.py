"""The effect of a profile on a kernel, as text."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from kdyno.base import terminal
from kdyno.base.text import clean, format_count
from kdyno.profile.objects import WORDS, Fate, ProfileObjects, count_by_folder
from kdyno.profile.show import say_line, table_of

FOLDERS = 10
"""The default number of directories to print for one reason."""


def print_objects(view: ProfileObjects, *, hot: bool = False, verbose: bool = False) -> None:
    """Print totals, objects without the profile by reason, and the hot functions if requested."""
    terminal.line(totals(view))
    console = terminal.console()
    for fate in view.counts:
        if fate != "profile":
            _print_reason(console, view, fate, verbose=verbose)
    if hot:
        _print_hot(console, view)


def totals(view: ProfileObjects) -> str:
    """Return one line with the numbers of objects by fate, and of functions. Pure."""
    with_it = view.counts.get("profile", 0)
    parts = [f"{with_it:,} of {format_count(len(view.objects), 'object')} with the {view.use} profile"]
    parts += [f"{number:,} {WORDS[fate]}" for fate, number in view.counts.items() if fate != "profile"]
    return f"image {view.image[:12]}: {', '.join(parts)}; {_functions(view)}"


def _functions(view: ProfileObjects) -> str:
    if view.functions is None:
        return "hot and cold functions are not on record: the image was built before kdyno recorded them"
    hot, cold = len(view.hot), len(view.functions) - len(view.hot)
    return f"{format_count(hot, 'hot function')}, {cold:,} cold, whole or in part"


def _print_hot(console: Console, view: ProfileObjects) -> None:
    """Print hot functions with their objects, unless one object has all functions, as vmlinux.o may."""
    say_line(console, "")
    say_line(console, "hot functions", "bold")
    has_objects = len({section.object for section in view.functions or ()}) > 1
    table = table_of(("bytes", "right"), ("function", "left"), *([("object", "left")] if has_objects else []))
    for section in view.hot:
        names = (section.function, section.object) if has_objects else (section.function,)
        table.add_row(f"{section.bytes:,}", *(Text(clean(name)) for name in names))
    console.print(table)


def _print_reason(console: Console, view: ProfileObjects, fate: Fate, *, verbose: bool) -> None:
    """Print the number of objects by directory for one reason, or all of its objects."""
    say_line(console, "")
    say_line(console, f"{WORDS[fate]}: {format_count(view.counts[fate], 'object')}", "bold")
    if verbose:
        for entry in view.objects:
            if entry.fate == fate:
                say_line(console, f"  {clean(entry.source)}")
        return
    folders = list(count_by_folder(view.objects, fate).items())
    table = table_of(("objects", "right"), ("directory", "left"))
    for folder, number in folders[:FOLDERS]:
        table.add_row(f"{number:,}", Text(clean(folder)))
    console.print(table)
    if (left := len(folders) - FOLDERS) > 0:
        say_line(console, f"and {left:,} more (-v lists all objects)", "dim")
