"""Checks in the line tables of a vmlinux whether a function is really inlined into another."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from kdyno.base import debuginfo
from kdyno.base.debuginfo import ElfDamaged
from kdyno.base.process import ToolHangs
from kdyno.kernel.vmlinux.checks import NoLineTables, NotAVmlinux, require_line_tables
from kdyno.profile.functions import plain_name
from kdyno.understand.explain.measured import MeasuredRegion
from kdyno.understand.explain.model import Inlining

MOST_ADDRESSES = 4000
"""The most addresses of one query, which takes a second or two after the tables are read."""
ADDRESSES_EACH = 400
STEP = 8
"""The bytes from one address to the next in a block."""


def confirm_inlining(claims: Sequence[Inlining], measured: MeasuredRegion, vmlinux: Path) -> list[Inlining]:
    """Return the claims, confirmed or refuted by the line tables of the kernel that should have the callee inlined.

    They are unchanged if vmlinux has no line tables, which are optional.
    """
    addresses = sorted(_addresses({claim.caller for claim in claims}, measured))[:MOST_ADDRESSES]
    if not addresses or not has_line_tables(vmlinux):
        return list(claims)
    pairs = set(_inlined_pairs(chains(addresses, vmlinux)))
    return [claim.model_copy(update={"confirmed": (claim.caller, claim.callee) in pairs}) for claim in claims]


def has_line_tables(vmlinux: Path) -> bool:
    """Return whether a kernel was built with line tables: `lines = true` in its recipe."""
    try:
        require_line_tables(vmlinux)
    except (NoLineTables, NotAVmlinux):
        return False
    return True


def chains(addresses: Iterable[int], vmlinux: Path) -> list[list[str]]:
    """Return for each address the functions that contain it, the innermost first; empty if the file can't be read."""
    try:
        frames_of_addresses = debuginfo.frames(vmlinux, addresses)
    except (ElfDamaged, ToolHangs):
        return []
    return [[plain_name(frame.function) for frame in frames] for frames in frames_of_addresses]


def _inlined_pairs(inline_chains: list[list[str]]) -> Iterable[tuple[str, str]]:
    """Return (caller, callee) for every callee that is inlined into a function, at any depth."""
    return ((chain[-1], callee) for chain in inline_chains for callee in chain[:-1])


def _addresses(callers: set[str], measured: MeasuredRegion) -> Iterable[int]:
    """Yield addresses in the most executed blocks of these functions."""
    for function in measured.record.functions:
        if plain_name(function.name) not in callers:
            continue
        end = function.address + function.size
        for context in measured.contexts:
            blocks = context.blocks
            inside = blocks[(blocks["start"] >= function.address) & (blocks["start"] < end)]
            hottest = inside[np.argsort(inside["count"], kind="stable")[::-1]]
            spread = (
                address
                for start, length in zip(hottest["start"].tolist(), hottest["length"].tolist(), strict=True)
                for address in range(start, min(start + length, end), STEP)
            )
            yield from itertools.islice(spread, ADDRESSES_EACH)
