"""Compares sections and symbols of one or two files by name. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from kdyno.understand.size.elf import COMMON, KINDS, Elf, Kind
from kdyno.understand.size.model import ChangeKind, KindTotal, SizeRow, SymbolRow

PADDING = re.compile(r"__(pfx|cfi)_")
"""Symbols of the padding before each function, which are not counted."""
NUMBER = re.compile(r"\.\d+(?=\.|$)")
UNIQUE = re.compile(r"(__UNIQUE_ID_\w*[A-Za-z_])\d+")
"""__UNIQUE_ID() of include/linux/compiler.h ends with a number that counts through a file."""

Sizes = dict[tuple[str, Kind | None], int]
"""Bytes by name and kind."""


def counted_name(name: str, kind: Kind, *, clones_apart: bool) -> str:
    """Return the name that a symbol counts for: `vfs_read` for `vfs_read.cold` and `vfs_read.constprop.0`.

    Data, and functions if clones are counted apart, lose only the numbers of compilers: `vfs_read.constprop`.
    """
    if kind == "text" and not clones_apart:
        return name.partition(".")[0] or name
    unique = UNIQUE.fullmatch(name)
    return unique[1] if unique else NUMBER.sub("", name) or name


def symbol_sizes(elf: Elf, *, clones_apart: bool = False) -> Sizes:
    """Return the sizes of symbols in loaded sections; static symbols of one name are summed.

    Of several names for one place one counts: the one with the fewest leading underscores, then the first of the
    alphabet.
    """
    names: dict[tuple[int, int, int], str] = {}
    sizes: Sizes = defaultdict(int)
    for symbol in elf.symbols:
        if PADDING.match(symbol.name):
            continue
        if symbol.section == COMMON:
            sizes[counted_name(symbol.name, "bss", clones_apart=clones_apart), "bss"] += symbol.size
            continue
        place = (symbol.section, symbol.value, symbol.size)
        names[place] = min(names.get(place, symbol.name), symbol.name, key=_plainness)
    for (index, _, size), name in names.items():
        if (section := elf.sections.get(index)) and section.kind:
            sizes[counted_name(name, section.kind, clones_apart=clones_apart), section.kind] += size
    return dict(sizes)


def _plainness(name: str) -> tuple[int, str]:
    return len(name) - len(name.lstrip("_")), name


def section_sizes(elf: Elf) -> Sizes:
    """Return the sizes of sections; several sections of one name are summed."""
    sizes: Sizes = defaultdict(int)
    for section in elf.sections.values():
        sizes[section.name, section.kind] += section.size
    return dict(sizes)


def symbol_rows(before: Sizes, after: Sizes | None) -> tuple[SymbolRow, ...]:
    """Return rows of symbols, the largest change first; with one file the largest symbol first."""
    rows = [SymbolRow(**row.model_dump(), change_kind=_change_kind(row)) for row in _rows(before, after)]

    def place(row: SymbolRow) -> tuple[int, str, str]:
        return -abs(row.before or 0 if row.change is None else row.change), row.name, row.kind or ""

    return tuple(sorted(rows, key=place))


def _change_kind(row: SizeRow) -> ChangeKind | None:
    if row.change is None:
        return None
    if row.before is None:
        return "added"
    if row.after is None:
        return "removed"
    return "grown" if row.change > 0 else "shrunk" if row.change < 0 else "same"


def section_rows(before: Sizes, after: Sizes | None) -> tuple[SizeRow, ...]:
    """Return rows of sections: loaded ones by kind, then the others; the largest first."""

    def place(row: SizeRow) -> tuple[int, int, str]:
        order = KINDS.index(row.kind) if row.kind else len(KINDS)
        return order, -max(row.before or 0, row.after or 0), row.name

    return tuple(sorted(_rows(before, after), key=place))


def totals(rows: Iterable[SymbolRow], *, is_pair: bool) -> tuple[KindTotal, ...]:
    """Return a total for each kind, then one for all."""
    all_rows = list(rows)
    totals_by_kind = [_total(kind, kind, [row for row in all_rows if row.kind == kind], is_pair) for kind in KINDS]
    return (*totals_by_kind, _total("all", None, all_rows, is_pair))


def _total(name: str, kind: Kind | None, rows: list[SymbolRow], is_pair: bool) -> KindTotal:
    before, after = sum(row.before or 0 for row in rows), sum(row.after or 0 for row in rows)
    changes = [row.change or 0 for row in rows]
    kinds = [row.change_kind for row in rows]
    return KindTotal(
        name=name,
        kind=kind,
        before=before,
        after=after if is_pair else None,
        change=after - before if is_pair else None,
        added=kinds.count("added"),
        removed=kinds.count("removed"),
        grown=kinds.count("grown"),
        shrunk=kinds.count("shrunk"),
        up=sum(change for change in changes if change > 0),
        down=-sum(change for change in changes if change < 0),
    )


def _rows(before: Mapping[tuple[str, Kind | None], int], after: Sizes | None) -> list[SizeRow]:
    second = after or {}
    return [
        SizeRow(
            name=name,
            kind=kind,
            before=before.get((name, kind)),
            after=second.get((name, kind)),
            change=None if after is None else second.get((name, kind), 0) - before.get((name, kind), 0),
        )
        for name, kind in before.keys() | second.keys()
    ]
