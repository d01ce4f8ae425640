"""The output of `kdyno fit-config --json`."""

from __future__ import annotations

from kdyno.base.frozen import Frozen
from kdyno.tune.fit.symbols import Why
from kdyno.understand.size.model import KindTotal


class FitSymbol(Frozen):
    """A symbol that was y in the first configuration."""

    name: str
    is_on: bool
    """Whether the symbol is set in the small kernel."""
    is_set: bool
    """Whether the fragment sets it, because the symbol that selected it went."""
    why: Why
    text: str
    """The reason in words."""


class FitKernel(Frozen):
    key: str
    symbols: int
    """The number of symbols that are y."""
    bzimage: int
    """The size in bytes, as in `text`."""
    text: int


class Fitted(Frozen):
    """The result of a fit."""

    load: tuple[str, ...]
    source: str
    """The version of the source and its origin."""
    config: str
    """The first configuration."""
    fragments: tuple[str, ...]
    toolchain: str
    lane: str
    seeds: tuple[int, ...]
    """The seeds; each kernel booted once for each seed."""
    before: FitKernel
    after: FitKernel | None
    """The small kernel; None if no symbol could be left out."""
    sizes: tuple[KindTotal, ...]
    """Bytes of symbols, before and after; empty if no symbol could be left out."""
    kernels: int
    """The number of smaller kernels that were built."""
    modules: int
    """The number of symbols that are m. The guest loads no modules, so they are not judged."""
    symbols: tuple[FitSymbol, ...]
    """The symbols by name."""
    switched_on: tuple[str, ...]
    """The symbols that Kconfig set because others are off."""
    fragment: str | None = None
    """The file of the fragment."""

    @property
    def off(self) -> tuple[FitSymbol, ...]:
        return tuple(symbol for symbol in self.symbols if not symbol.is_on)

    @property
    def set_alone(self) -> tuple[FitSymbol, ...]:
        return tuple(symbol for symbol in self.symbols if symbol.is_set)

    @property
    def stays(self) -> tuple[FitSymbol, ...]:
        return tuple(symbol for symbol in self.symbols if symbol.is_on)
