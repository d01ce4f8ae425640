"""Kinds of symbols that aren't switched off because nothing of them ran: data/fit-kinds.toml."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from kdyno.base import toml
from kdyno.base.frozen import Frozen
from kdyno.kernel import hardening


class SymbolKind(Frozen):
    name: str
    reason: str
    """For the fragment: why coverage can't decide."""
    firm: bool = False
    """Whether what such a symbol depends on is kept, too."""
    hardening: bool = False
    """Whether all that data/hardening.txt lists is of this kind."""
    symbols: tuple[str, ...] = ()
    """Patterns of names, without CONFIG_."""
    places: tuple[str, ...] = ()
    """Patterns of Kconfig files."""

    def fits(self, symbol: str, defined_in: Collection[str]) -> bool:
        """`defined_in` are the Kconfig files that define the symbol."""
        return (
            any(fnmatchcase(symbol, pattern) for pattern in self.symbols)
            or any(fnmatchcase(file, pattern) for pattern in self.places for file in defined_in)
            or (self.hardening and symbol in _protecting())
        )


@cache
def kinds() -> tuple[SymbolKind, ...]:
    """In the order in which they count."""
    text = (files("kdyno") / "data" / "fit-kinds.toml").read_text(encoding="utf-8")
    return tuple(SymbolKind.model_validate(row) for row in toml.parse(text)["kind"])


def kind_of(symbol: str, defined_in: Collection[str]) -> SymbolKind | None:
    return next((kind for kind in kinds() if kind.fits(symbol, defined_in)), None)


@cache
def _protecting() -> frozenset[str]:
    return frozenset(name for row in hardening.table().values() for name in row.names)
