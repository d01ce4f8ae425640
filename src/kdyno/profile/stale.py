"""The validity of a profile for another kernel: which of its functions have changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from kdyno.base.frozen import Frozen
from kdyno.base.state import State
from kdyno.kernel.images import content_digest
from kdyno.kernel.vmlinux.checks import find_recorded_vmlinux
from kdyno.measure.guest.pmu_parts import UNKNOWN
from kdyno.measure.guest.pmu_record import PmuRecord, read_pmu_record
from kdyno.measure.guest.symbols import Symbol
from kdyno.profile.clang import is_record, samples
from kdyno.profile.code import Code, same_code
from kdyno.profile.functions import plain_name
from kdyno.profile.shares import average_shares, shares_by_benchmark, shares_of_samples

Fate = Literal["same", "code", "size", "gone"]
"""The same code, changed code of the same size, another size, no function of this name."""
Compared = Literal["code", "sizes", "names"]


class StaleFunction(Frozen):
    """A changed function."""

    function: str
    fate: Fate
    share: float
    """The share of all instructions, or samples, of the profile, 0 to 1."""
    size: int | None
    """The recorded size in bytes; None for profiles of clang, which don't contain it."""
    size_now: int | None
    """The present size in bytes; None if the function doesn't exist."""


class Stale(Frozen):
    """The output of `kdyno profile stale --json`."""

    kind: Literal["record", "clang"]
    vmlinux: str
    """The SHA-256 of the vmlinux that the profile was compared with."""
    compared: Compared
    """By code; by sizes if the vmlinux that ran was not found; by names for profiles of clang."""
    functions: dict[Fate, int]
    """The number of functions of the profile by fate."""
    shares: dict[Fate, float]
    """Their share of all instructions, with equal weights of benchmarks, or of all samples; 0 to 1."""
    stale: tuple[StaleFunction, ...]
    """The changed functions, the largest share first."""


def stale(profile: Path, vmlinux: Path, recorded: Path | None, state: State) -> Stale:
    """Compare a profile with another vmlinux.

    `recorded` is the vmlinux that ran; None searches for it among the images. Raises NotAProfile, NotAVmlinux,
    OtherVmlinux if `recorded` isn't the one that ran, and what reading the record raises.
    """
    if not is_record(profile):
        shares = shares_of_samples(samples(profile))
        names = {plain_name(name): versions[0].size for name, versions in Code(vmlinux).functions.items()}
        return _summary(
            "clang", vmlinux, "names", [_fate_by_name(name, share, names) for name, share in shares.functions.items()]
        )
    record = read_pmu_record(profile)
    old = find_recorded_vmlinux(record, profile, recorded, state)
    fates = _Fates(Code(old) if old else None, Code(vmlinux))
    return _summary("record", vmlinux, "code" if old else "sizes", fates.find(record, profile))


class _Fates:
    """Determines the fates of functions by name."""

    def __init__(self, old: Code | None, new: Code) -> None:
        self.old, self.new = old, new

    def find(self, record: PmuRecord, path: Path) -> list[StaleFunction]:
        shares = average_shares(shares_by_benchmark(record, path, plain=False).values()).functions
        sizes: dict[str, list[Symbol]] = {}
        for function in record.functions:
            sizes.setdefault(function.name, []).append(Symbol(function.address, function.size, function.name))
        return [self._fate(sizes[name], share) for name, share in shares.items() if name != UNKNOWN]

    def _fate(self, symbols: list[Symbol], share: float) -> StaleFunction:
        """Return the worst fate of the functions of one name, which have a common share."""
        order = get_args(Fate)
        fates = [(order.index(fate), symbol, now) for symbol in symbols for fate, now in [self._symbol_fate(symbol)]]
        worst, symbol, now = max(fates, key=lambda fate: fate[0])
        return StaleFunction(function=symbol.name, fate=order[worst], share=share, size=symbol.size, size_now=now)

    def _symbol_fate(self, symbol: Symbol) -> tuple[Fate, int | None]:
        candidates = self.new.functions.get(symbol.name, [])
        if not candidates:
            return "gone", None
        of_size = [candidate for candidate in candidates if candidate.size == symbol.size]
        if not of_size:
            return "size", candidates[0].size
        if self.old and not any(same_code(self.old, symbol, self.new, candidate) for candidate in of_size):
            return "code", symbol.size
        return "same", symbol.size


def _fate_by_name(name: str, share: float, sizes: Mapping[str, int]) -> StaleFunction:
    now = sizes.get(plain_name(name))
    return StaleFunction(function=name, fate="gone" if now is None else "same", share=share, size=None, size_now=now)


def _summary(
    kind: Literal["record", "clang"], vmlinux: Path, compared: Compared, functions: list[StaleFunction]
) -> Stale:
    fates: tuple[Fate, ...] = get_args(Fate)
    of = {fate: [function for function in functions if function.fate == fate] for fate in fates}
    return Stale(
        kind=kind,
        vmlinux=content_digest(vmlinux),
        compared=compared,
        functions={fate: len(of[fate]) for fate in fates},
        shares={fate: sum(function.share for function in of[fate]) for fate in fates},
        stale=tuple(
            sorted(
                (function for function in functions if function.fate != "same"),
                key=lambda function: (-function.share, function.function),
            )
        ),
    )
