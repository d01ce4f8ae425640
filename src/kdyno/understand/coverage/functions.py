"""The functions of a vmlinux with their source files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.base import elf_listing
from kdyno.kernel.vmlinux.sources import NOWHERE as NO_FILE
from kdyno.kernel.vmlinux.sources import Sources, read_sources
from kdyno.measure.guest.symbols import functions
from kdyno.profile.functions import NOWHERE, plain_name

PADDING_BEFORE = "__pfx_"
"""The prefix of symbols for the space before functions, which the kernel may patch (CONFIG_CALL_PADDING)."""


@dataclass(frozen=True)
class Part:
    """The code of one symbol: a function, a clone of it, or a part that a compiler has split off."""

    address: int
    size: int
    """Bytes."""
    symbol: str
    function: str
    """The name in the source."""
    file: str
    """The source file relative to the source tree; empty if it isn't known, as for assembler code."""


class CodeParts:
    """All code of a vmlinux that symbols name, by address."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        self._starts = np.array([part.address for part in parts], np.uint64)
        self._sizes = np.array([part.size for part in parts], np.uint64)

    def find(self, addresses: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of the part of each address; NOWHERE for an address outside of all parts."""
        if not self.parts:
            return np.full(len(addresses), NOWHERE)
        indices = np.searchsorted(self._starts, addresses, side="right").astype(np.int64) - 1
        inside = (indices >= 0) & (addresses - self._starts[indices] < self._sizes[indices])
        return np.where(inside, indices, NOWHERE)


def read_parts(vmlinux: Path) -> CodeParts:
    """Read the code parts of a vmlinux. Raises ElfUnsound, VmlinuxUnfit, and what read_sources raises."""
    symbols = functions(elf_listing.symbols(vmlinux), vmlinux)
    return parts_of([(symbol.address, symbol.size, symbol.name) for symbol in symbols], read_sources(vmlinux))


def parts_of(symbols: Sequence[tuple[int, int, str]], sources: Sources) -> CodeParts:
    """Return the code parts of symbols, which are addresses, sizes and names in the order of addresses. Pure."""
    named = [symbol for symbol in symbols if symbol[1] and not symbol[2].startswith(PADDING_BEFORE)]
    files = sources.files(np.array([address for address, *_ in named], np.uint64))
    return CodeParts(
        [
            Part(address, size, name, plain_name(name), _plain_file(file))
            for (address, size, name), file in zip(named, files, strict=True)
        ]
    )


def _plain_file(file: str) -> str:
    """Return the file as in line tables; empty for code without a file."""
    return file if file != NO_FILE else ""
