"""Commands that would work for a file that wasn't understood, made of the file's own names."""

from __future__ import annotations

import shlex

from kdyno.errors import UserError
from kdyno.foreign.roles import VALUES, folded
from kdyno.foreign.sheet import Shape, is_number, shape_of
from kdyno.foreign.source import STANDARD_INPUT, Source


def with_names(source: Source) -> str:
    """How to judge this file against another."""
    return f"kdyno judge {shlex.quote(f'before={_file(source)}')} after=FILE2"


def with_columns(source: Source, other_than: str = "") -> str:
    """How to judge a table: the value is a column of numbers, the variant the text column with the fewest values, but
    not `other_than`, and the benchmark the next. Empty if it has no column of numbers."""
    try:
        shape = shape_of(source)
    except UserError:
        return ""
    value = _value(shape)
    if not value:
        return ""
    texts = [name for name in _texts(shape) if name not in (value, other_than)]
    options = [("--variant", texts[0])] if texts else []
    options += [("--benchmark", texts[1])] if len(texts) > 1 else []
    options += [("--value", value)]
    files = f"kdyno judge {shlex.quote(_file(source))}" if texts else with_names(source)
    return " ".join([files, *(f"{option} {shlex.quote(name)}" for option, name in options)])


def _file(source: Source) -> str:
    return "-" if source.shown == str(STANDARD_INPUT) else source.shown


def _columns(shape: Shape) -> dict[str, list[str]]:
    """Column -> what the first rows have in it."""
    return {name: [row[index] for row in shape.first if index < len(row)] for index, name in enumerate(shape.header)}


def _value(shape: Shape) -> str:
    """The column of numbers that is called like a value, else the one with the most different numbers; or nothing."""
    numeric = {
        name: cells
        for name, cells in _columns(shape).items()
        if cells and all(is_number(cell.replace(shape.decimal, ".")) for cell in cells) and "," not in name
    }
    return max(numeric, key=lambda name: (folded(name) in VALUES, len(set(numeric[name]))), default="")


def _texts(shape: Shape) -> list[str]:
    """The columns of text, those first that have few values, but more than one."""
    texts = {
        name: len(set(cells))
        for name, cells in _columns(shape).items()
        if not all(is_number(cell.replace(shape.decimal, ".")) for cell in cells)
    }
    return sorted(texts, key=lambda name: (texts[name] < 2, texts[name]))
