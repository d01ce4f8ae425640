"""Shares of the instructions of a benchmark, by function and by block, or of the samples of a profile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kdyno.base.errors import UserError
from kdyno.measure.guest.pmu_parts import Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.flat import event_column
from kdyno.profile.functions import plain_name
from kdyno.profile.select import WORK, sum_contexts

Part = TypeVar("Part")
Block = tuple[int, int]
"""The address of the first instruction, and the number of instructions."""


class NothingRanIn(UserError):
    message = "{record} has no kernel code in any region"
    hint = "run `kdyno profile show` to list the regions and what ran in them"


@dataclass(frozen=True)
class Shares:
    """The shares of all instructions (or samples), by function and by block; each sums to 1."""

    functions: dict[str, float]
    blocks: dict[Block, float]
    """Empty for a profile of clang."""


def shares_by_benchmark(record: PmuRecord, path: Path, *, plain: bool) -> dict[str, Shares]:
    """Return the shares by benchmark, for benchmarks with executed kernel code, in the contexts of their own work.

    `plain` uses the names of functions in the source, without suffixes of compilers. Raises NothingRanIn.
    """
    by_benchmark = {
        record.benchmark_name(index): shares
        for index, region in record.regions.items()
        if (shares := _region_shares(record, region, plain=plain))
    }
    if not by_benchmark:
        raise NothingRanIn(record=path)
    return by_benchmark


def shares_of_samples(samples: Mapping[str, int]) -> Shares:
    total = sum(samples.values())
    return Shares({name: count / total for name, count in samples.items() if count}, {})


def average_shares(parts: Iterable[Shares]) -> Shares:
    """Return the mean of at least one Shares, with equal weights."""
    functions: defaultdict[str, float] = defaultdict(float)
    blocks: defaultdict[Block, float] = defaultdict(float)
    several = list(parts)
    for part in several:
        for name, share in part.functions.items():
            functions[name] += share / len(several)
        for block, share in part.blocks.items():
            blocks[block] += share / len(several)
    return Shares(dict(functions), dict(blocks))


def common_share(one: Mapping[Part, float], other: Mapping[Part, float]) -> float:
    """Return the similarity of two distributions, 0 to 1: the sum of the smaller share of each part."""
    return sum(min(share, other.get(part, 0.0)) for part, share in one.items())


def _region_shares(record: PmuRecord, region: Region, *, plain: bool) -> Shares | None:
    """Return the shares of a region; None if no kernel code ran in it."""
    column = event_column(record, "instructions")
    context = sum_contexts([region], WORK)
    functions: defaultdict[str, int] = defaultdict(int)
    for index, events in context.functions.items():
        name = record.functions[index].name
        functions[plain_name(name) if plain else name] += int(events[column])
    blocks: defaultdict[Block, int] = defaultdict(int)
    for start, instructions, _last, _length, count in context.blocks.tolist():
        blocks[start, instructions] += instructions * count
    of_functions, of_blocks = sum(functions.values()), sum(blocks.values())
    if not of_functions or not of_blocks:
        return None
    return Shares(
        {name: count / of_functions for name, count in functions.items() if count},
        {block: count / of_blocks for block, count in blocks.items()},
    )
