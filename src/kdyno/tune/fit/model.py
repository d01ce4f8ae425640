"""What `kdyno fit-config --json` prints."""

from __future__ import annotations

from kdyno.base.frozen import Frozen
from kdyno.tune.fit.symbols import Why
from kdyno.understand.size.model import KindTotal


class FitSymbol(Frozen):
    """A symbol that was y in the configuration that was started from."""

    name: str
    is_on: bool
    """In the small kernel."""
    is_set: bool
    """Whether the fragment sets it: what selected it went."""
    why: Why
    text: str
    """The reason in words."""


class FitKernel(Frozen):
    key: str
    symbols: int
    """That are y."""
    bzimage: int
    """Bytes, as is the next."""
    text: int


class Fitted(Frozen):
    """What came of it."""

    load: tuple[str, ...]
    source: str
    """The version and where it is from."""
    config: str
    """The configuration that was started from."""
    fragments: tuple[str, ...]
    toolchain: str
    lane: str
    seeds: tuple[int, ...]
    """One boot of each kernel for each."""
    before: FitKernel
    after: FitKernel | None
    """None: nothing could be left out."""
    sizes: tuple[KindTotal, ...]
    """Bytes of symbols, before and after; empty if nothing could be left out."""
    kernels: int
    """How many smaller ones were built."""
    modules: int
    """Symbols that are m: the guest loads no modules, so that nothing is known of them."""
    symbols: tuple[FitSymbol, ...]
    """By name."""
    switched_on: tuple[str, ...]
    """What Kconfig set because of what is off."""
    fragment: str | None = None
    """The file that was written."""

    @property
    def off(self) -> tuple[FitSymbol, ...]:
        return tuple(symbol for symbol in self.symbols if not symbol.is_on)

    @property
    def set_alone(self) -> tuple[FitSymbol, ...]:
        return tuple(symbol for symbol in self.symbols if symbol.is_set)

    @property
    def stays(self) -> tuple[FitSymbol, ...]:
        return tuple(symbol for symbol in self.symbols if symbol.is_on)
