"""The output of `kdyno kernel size` as data."""

from __future__ import annotations

from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.understand.size.elf import Kind

ChangeKind = Literal["added", "removed", "grown", "shrunk", "same"]


class SizedFile(Frozen):
    """One of the two files."""

    named: str
    """The name that the user gave."""
    path: str
    machine: str
    """The architecture as in readelf."""


class SizeRow(Frozen):
    """One section, symbol or total, with sizes in bytes; null if the file or its section or symbol is missing."""

    name: str
    kind: Kind | None
    """Null for sections that aren't loaded, and for the total of all kinds."""
    before: int | None
    after: int | None
    change: int | None
    """Null with one file."""


class SymbolRow(SizeRow):
    """Symbols that count as one: clones and their function, static symbols of one name."""

    change_kind: ChangeKind | None
    """Null with one file."""


class KindTotal(SizeRow):
    """The total of all symbols of a kind, and its change; `name` is the name of the kind, or `all`."""

    added: int
    """The number of added symbols; this and the next are 0 with one file."""
    removed: int
    grown: int
    shrunk: int
    up: int
    """The bytes of added symbols and of growth."""
    down: int
    """The bytes of removed symbols and of reduction."""


class SizeReport(Frozen):
    """Sizes of one file, or of two and how they differ."""

    before: SizedFile
    after: SizedFile | None
    totals: tuple[KindTotal, ...]
    """The totals of symbols: one for each kind, then one for all."""
    sections: tuple[SizeRow, ...]
    """The sections of the files, with padding."""
    symbols: tuple[SymbolRow, ...]
    """All symbols, the largest change first; with one file the largest symbol first."""
    notes: tuple[str, ...]
