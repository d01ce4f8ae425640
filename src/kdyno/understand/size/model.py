"""What `kdyno kernel size` says, as data."""

from __future__ import annotations

from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.understand.size.elf import Kind

ChangeKind = Literal["added", "removed", "grown", "shrunk", "same"]


class SizedFile(Frozen):
    """One of the two files."""

    named: str
    """As the user named it."""
    path: str
    machine: str
    """Architecture, as readelf has it."""


class SizeRow(Frozen):
    """One section, symbol or total. Sizes in bytes; null where the file has none of it, or where there is no file."""

    name: str
    kind: Kind | None
    """Null for sections that aren't loaded, and for the total of all kinds."""
    before: int | None
    after: int | None
    change: int | None
    """Null where only one file was given."""


class SymbolRow(SizeRow):
    """Symbols that count as one: clones and their function, static symbols of one name."""

    change_kind: ChangeKind | None
    """Null where only one file was given."""


class KindTotal(SizeRow):
    """What all symbols of a kind take together, and how that changed; `name` is the kind's, or `all`."""

    added: int
    """How many symbols; 0 with one file, as the rest."""
    removed: int
    grown: int
    shrunk: int
    up: int
    """Bytes of what was added and grown."""
    down: int
    """Bytes of what was removed and shrunk."""


class SizeReport(Frozen):
    """Sizes of one file, or of two and how they differ."""

    before: SizedFile
    after: SizedFile | None
    totals: tuple[KindTotal, ...]
    """Of symbols: one for each kind, then all of them."""
    sections: tuple[SizeRow, ...]
    """As the files have them, padding included."""
    symbols: tuple[SymbolRow, ...]
    """All of them, those that changed most first; with one file the largest first."""
    notes: tuple[str, ...]
