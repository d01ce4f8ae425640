"""Commands that would work for a file that wasn't understood, made from the file's own names."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from kdyno.base.errors import UserError
from kdyno.measure.readers.cells import cell_of
from kdyno.measure.readers.headings import NOT_MEASURED, meaning
from kdyno.measure.readers.numerals import is_missing
from kdyno.measure.readers.roles import FACTORS, NUMBERING, ROLES, VALUES, fold_name
from kdyno.measure.readers.sheet import Shape, shape_of
from kdyno.measure.readers.source import STANDARD_INPUT, FileSource

MOST_VALUES = 3
"""Columns of numbers of which all may be measurements; of more, some number or describe the rows."""
VARIANTS = frozenset(ROLES["variant"].split()) - {"name"}
"""Names of columns whose values may be compared with each other."""


def with_names(sources: Sequence[FileSource]) -> str:
    """Return the command that judges these files against each other, or a lone one against another."""
    names = {source.name for source in sources}
    named = [f"{'before' if len(sources) == 1 else source.name}={_file(source)}" for source in sources]
    return shlex.join(["kdyno", "judge", *named, *(["after=FILE2"] if len(names) == 1 else [])])


def with_columns(source: FileSource, sources: Sequence[FileSource], other_than: str = "") -> str:
    """Return the command that judges tables like one of them; empty if that has no column of numbers.

    The variant of a lone file is a column that is called like one, but not `other_than`; no other, since benchmarks
    must not be compared with each other. If there are several files, each is a variant, and their rows belong together.
    """
    lone = len(sources) == 1
    try:
        shape = shape_of(source)
    except UserError:
        return ""
    values, texts = _values(shape), _texts(shape)
    if not values or len(values) > MOST_VALUES:
        return ""
    variants = [name for name in texts if _is_like_a_variant(name) and name != other_than] if lone else []
    rest = [name for name in texts if name not in variants[:1] and name != other_than]
    options = [("--variant", variants[0])] if variants else []
    if rest:
        options += [("--block" if not lone and _tells_rows_apart(shape, rest[0]) else "--benchmark", rest[0])]
    options += [("--value", ",".join(values))]
    files = f"kdyno judge {shlex.quote(_file(source))}" if variants else with_names(sources)
    return " ".join([files, *(f"{option} {shlex.quote(name)}" for option, name in options)])


def _is_like_a_variant(column: str) -> bool:
    return fold_name(column) in VARIANTS or not VARIANTS.isdisjoint(fold_name(column).split("_"))


def _file(source: FileSource) -> str:
    return "-" if source.shown == str(STANDARD_INPUT) else source.shown


def _cells(shape: Shape, name: str) -> list[str]:
    """Return the cells of the first rows in a column."""
    index = shape.header.index(name)
    return [row[index] for row in shape.first if index < len(row) and not is_missing(row[index])]


def _is_number(shape: Shape, name: str) -> bool:
    cells = [cell_of(cell, shape.decimal.mark) for cell in _cells(shape, name)]
    return sum(cell is not None for cell in cells) * 2 > len(cells)


def _values(shape: Shape) -> list[str]:
    """Return the column of numbers that is called like a value, else all that may be measurements."""
    names = [
        name
        for name in shape.header
        if "," not in name
        and _is_number(shape, name)
        and meaning(name) not in NOT_MEASURED
        and fold_name(name) not in NUMBERING | FACTORS
    ]
    return next(([name] for name in names if fold_name(name) in VALUES), names)


def _texts(shape: Shape) -> list[str]:
    """Return the columns of text, first those that have few values, but more than one."""
    texts = {
        name: len(set(_cells(shape, name)))
        for name in shape.header
        if not _is_number(shape, name) or fold_name(name) in VARIANTS  # versions look like numbers
    }
    return sorted(texts, key=lambda name: (texts[name] < 2, texts[name]))


def _tells_rows_apart(shape: Shape, name: str) -> bool:
    cells = _cells(shape, name)
    return len(set(cells)) == len(cells) > 1
