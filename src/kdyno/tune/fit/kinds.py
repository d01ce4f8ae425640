"""Kinds of symbols that stay although none of their code ran: data/fit-kinds.toml."""

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
    """The reason in the fragment why coverage can't decide."""
    firm: bool = False
    """Whether the dependencies of such a symbol are kept, too."""
    hardening: bool = False
    """Whether all symbols of data/hardening.txt are of this kind."""
    symbols: tuple[str, ...] = ()
    """Patterns of names, without CONFIG_."""
    places: tuple[str, ...] = ()
    """Patterns of Kconfig files."""

    def fits(self, symbol: str, defined_in: Collection[str]) -> bool:
        """Return whether the symbol is of this kind; `defined_in` are the Kconfig files that define it."""
        return (
            any(fnmatchcase(symbol, pattern) for pattern in self.symbols)
            or any(fnmatchcase(file, pattern) for pattern in self.places for file in defined_in)
            or (self.hardening and symbol in _protecting())
        )


@cache
def kinds() -> tuple[SymbolKind, ...]:
    """Return all kinds, by descending precedence."""
    text = (files("kdyno") / "data" / "fit-kinds.toml").read_text(encoding="utf-8")
    return tuple(SymbolKind.model_validate(row) for row in toml.parse(text)["kind"])


def kind_of(symbol: str, defined_in: Collection[str]) -> SymbolKind | None:
    """Return the first kind that fits the symbol; None without one."""
    return next((kind for kind in kinds() if kind.fits(symbol, defined_in)), None)


@cache
def _protecting() -> frozenset[str]:
    return frozenset(name for row in hardening.table().values() for name in row.names)
