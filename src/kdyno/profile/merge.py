"""Merging several PMU records of one kernel: counts are summed by benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kdyno.base.errors import UserError
from kdyno.kernel.vmlinux.checks import RecordOfNoImage
from kdyno.measure.guest.pmu_limits import LONGEST_NAME, MOST, limit_name
from kdyno.measure.guest.pmu_parts import Array, ContextCounts, Function, Region, StackNode
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.measure.guest.pmu_values import Counts
from kdyno.measure.guest.pmu_write import encode_body
from kdyno.profile.select import sum_rows

BLOCK_KEYS = ("start", "instructions", "last", "length")
WORD = 1 << 64
"""The modulus of counts, as of all numbers in a record."""


class NotAlike(UserError):
    message = "records with different settings cannot be merged: {what} of {first} is {one}, of {other} it is {another}"
    hint = "merge records of one vmlinux, with the same family and --events, from the same kdyno"


class NoBenchmarkNames(UserError):
    message = "record {record} has no names of benchmarks, so that its regions cannot be matched"
    hint = "make a record with `kdyno profile record`, which writes names"


class MergedTooLarge(UserError):
    message = "the merged record would have {number:,} {things}: at most {most:,} are possible"
    hint = "merge fewer records"


@dataclass(frozen=True)
class Read:
    """A record, and the path of its file."""

    path: Path
    record: PmuRecord


def merge(records: Sequence[Read]) -> PmuRecord:
    """Merge at least one record of one vmlinux: regions of the same benchmark are summed.

    Their iterations are concatenated in the order of the records. Raises RecordOfNoImage, NotAlike,
    NoBenchmarkNames and MergedTooLarge.
    """
    for recorded in records:
        _require_like(records[0], recorded)
    first = records[0].record
    functions = tuple(sorted({function for recorded in records for function in recorded.record.functions}, key=_place))
    index_of = {function: index for index, function in enumerate(functions)}
    benchmarks = tuple(dict.fromkeys(name for recorded in records for name in recorded.record.benchmarks))
    parts: dict[int, list[Region]] = {}
    for recorded in records:
        for region in recorded.record.regions.values():
            benchmark = benchmarks.index(recorded.record.benchmark_name(region.benchmark))
            parts.setdefault(benchmark, []).append(_reindex(region, recorded.record.functions, index_of))
    merged = PmuRecord(
        plugin=first.plugin,
        scope=first.scope,
        # Sequences of blocks cannot be summed: the result is a record of all events.
        events="all" if first.events == "trace" else first.events,
        image=first.image,
        family=first.family,
        names=first.names,
        opened=sum(recorded.record.opened for recorded in records),
        unclosed=None,
        functions=functions,
        regions={benchmark: _merge_regions(benchmark, parts[benchmark]) for benchmark in sorted(parts)},
        benchmarks=benchmarks,
        merged=sum(recorded.record.merged for recorded in records),
        qemu_api=first.qemu_api,
        unmeasured=_sum_unmeasured(records),
    )
    _require_room(merged)
    return merged


def _require_like(first: Read, other: Read) -> None:
    if other.record.image is None:
        raise RecordOfNoImage(record=other.path)
    if any(region.benchmark >= len(other.record.benchmarks) for region in other.record.regions.values()):
        raise NoBenchmarkNames(record=other.path)
    for what, name in {
        "the vmlinux": "image",
        "the CPU family": "family",
        "--events": "events",
        "the list of events": "names",
        "the plugin": "plugin",
        "QEMU's plugin interface": "qemu_api",
        "the scope": "scope",
    }.items():
        one, another = getattr(first.record, name), getattr(other.record, name)
        if one != another:
            raise NotAlike(what=what, first=first.path, other=other.path, one=_short(one), another=_short(another))


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} names"
    text = str(value)
    return text[:12] if len(text) == 64 else text


def _place(function: Function) -> tuple[int, int, str]:
    return function.address, function.size, function.name


def _reindex(region: Region, functions: Sequence[Function], index_of: Mapping[Function, int]) -> Region:
    """Return the region with the indices of its functions in the merged record."""
    new = [index_of[function] for function in functions]
    contexts = [
        ContextCounts(part.blocks, part.branches, {new[index]: counts for index, counts in part.functions.items()})
        for part in region.contexts
    ]
    nodes = tuple(StackNode(node.parent, new[node.function], node.kind, node.instructions) for node in region.stacks)
    return Region(region.benchmark, region.iterations, (contexts[0], contexts[1], contexts[2]), nodes)


def _merge_regions(benchmark: int, regions: Sequence[Region]) -> Region:
    iterations: dict[int, Counts] = {}
    for region in regions:
        following = max(iterations, default=-1) + 1
        iterations |= {following + place: counts for place, counts in enumerate(region.iterations.values())}
    task, exception, interrupt = (_sum_contexts([region.contexts[place] for region in regions]) for place in range(3))
    return Region(benchmark, iterations, (task, exception, interrupt), _merge_stacks(regions))


def _sum_unmeasured(records: Sequence[Read]) -> Array | None:
    """Return the sum of the counts outside of regions; None if a record has none."""
    parts = [recorded.record.unmeasured for recorded in records]
    known = [part for part in parts if part is not None]
    return sum_rows(np.concatenate(known), BLOCK_KEYS) if len(known) == len(parts) else None


def _sum_contexts(contexts: Sequence[ContextCounts]) -> ContextCounts:
    functions: dict[int, Counts] = {}
    for part in contexts:
        for index, counts in part.functions.items():
            functions[index] = functions[index] + counts if index in functions else counts
    blocks = np.concatenate([part.blocks for part in contexts])
    branches = np.concatenate([part.branches for part in contexts])
    return ContextCounts(
        blocks=sum_rows(blocks, BLOCK_KEYS),
        branches=sum_rows(branches, ("source", "target", "kind")),
        functions=dict(sorted(functions.items())),
    )


def _merge_stacks(regions: Sequence[Region]) -> tuple[StackNode, ...]:
    """Merge the trees of stacks: entries of the same kind from the same place become one node."""
    numbers: dict[tuple[int, int, int], int] = {}
    instructions: list[int] = []
    for region in regions:
        number_of = [0]
        for node in region.stacks:
            key = (number_of[node.parent], node.function, node.kind)
            number = numbers.setdefault(key, len(numbers) + 1)
            if number > len(instructions):
                instructions.append(0)
            instructions[number - 1] = (instructions[number - 1] + node.instructions) % WORD
            number_of.append(number)
    return tuple(StackNode(*key, instructions[number - 1]) for key, number in numbers.items())


def _require_room(record: PmuRecord) -> None:
    """Raise MergedTooLarge if the record exceeds a limit of its reader."""
    regions = record.regions.values()
    contexts = [context for region in regions for context in region.contexts]
    has = {
        "functions": len(record.functions),
        "regions": len(regions),
        "iterations": sum(len(region.iterations) for region in regions),
        "executed_blocks": sum(len(context.blocks) for context in contexts)
        + (0 if record.unmeasured is None else len(record.unmeasured)),
        "executed_branches": sum(len(context.branches) for context in contexts),
        "executed_functions": sum(len(context.functions) for context in contexts),
        "stack_nodes": sum(len(region.stacks) for region in regions),
    }
    for thing, number in has.items():
        if number > MOST[thing]:
            raise MergedTooLarge(number=number, things=limit_name(thing), most=MOST[thing])
    longest = max((len(function.name.encode()) for function in record.functions), default=0)
    if longest > LONGEST_NAME:
        raise MergedTooLarge(number=longest, things="bytes in the name of a function", most=LONGEST_NAME)
    if (size := len(encode_body(record))) > MOST["body_bytes"]:
        raise MergedTooLarge(number=size, things=limit_name("body_bytes"), most=MOST["body_bytes"])
