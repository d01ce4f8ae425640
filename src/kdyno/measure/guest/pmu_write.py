"""Writing a PMU record that kdyno itself has made from others; docs/profiles.md describes the format."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kdyno.base.files import write_whole
from kdyno.measure.guest.pmu_magic import MAGIC
from kdyno.measure.guest.pmu_parts import Array, ContextCounts, Function, Region
from kdyno.measure.guest.pmu_record import VERSION, PmuRecord
from kdyno.measure.guest.pmu_values import Counts, encode_varints, zigzag


def write_pmu_record(record: PmuRecord, out: Path) -> None:
    """Write a record that `read_pmu_record` reads back unchanged. Raise NotWritable and DiskFull.

    It doesn't check whether the record holds more than a reader accepts (pmu_limits.py).
    """
    write_whole(out, encode(record))


def encode(record: PmuRecord) -> bytes:
    """Return the record as the bytes of a file, equal on every host."""
    body = encode_body(record)
    header = {
        "plugin": record.plugin,
        "qemu_api": record.qemu_api,
        "scope": record.scope,
        "events": record.events,
        "image": record.image,
        "family": record.family,
        "event_names": record.names,
        "bytes": len(body),
        "unclosed": None,
        "opened": record.opened,
        "gave_up": None,
        "benchmarks": record.benchmarks,
        "merged": record.merged,
        "unmeasured": record.unmeasured is not None,
    }
    line = json.dumps(header, separators=(",", ":")).encode()
    return b"\n".join((MAGIC + VERSION, line, zlib.compress(body)))


def encode_body(record: PmuRecord) -> bytes:
    parts = [_numbers([len(record.functions)]), *_functions(record.functions), _numbers([len(record.regions)])]
    for region in record.regions.values():
        parts += _region(region, len(record.names))
    if record.unmeasured is not None:
        parts.append(_blocks(record.unmeasured))
    return b"".join(parts)


def _functions(functions: Sequence[Function]) -> list[bytes]:
    parts = []
    before = 0
    for function in functions:
        name = function.name.encode()
        parts += [_numbers([function.address - before, function.size, len(name)]), name]
        before = function.address
    return parts


def _region(region: Region, events: int) -> list[bytes]:
    iterations = [
        np.concatenate((np.array([number], np.uint64), counts.ravel())) for number, counts in region.iterations.items()
    ]
    parts = [_numbers([region.benchmark]), _table(_rows(iterations, 1 + 3 * events))]
    for context in region.contexts:
        parts += _context(context, events)
    nodes = [[node.parent, node.function, node.kind, node.instructions] for node in region.stacks]
    return [*parts, _table(np.array(nodes, np.uint64).reshape(-1, 4))]


def _blocks(blocks: Array) -> bytes:
    columns = (blocks[name] for name in ("instructions", "last", "length", "count"))
    return _columns((zigzag(_differences(blocks["start"].astype(np.uint64))), *columns))


def _context(context: ContextCounts, events: int) -> list[bytes]:
    branches = context.branches
    sources = branches["source"].astype(np.uint64)
    of_branches = (
        zigzag(_differences(sources)),
        zigzag(branches["target"] - sources),
        branches["kind"],
        branches["count"],
    )
    indices = _differences(np.array(list(context.functions), np.uint64))
    of_functions = [
        np.concatenate((index.reshape(1), counts))
        for index, counts in zip(indices, context.functions.values(), strict=True)
    ]
    return [_blocks(context.blocks), _columns(of_branches), _table(_rows(of_functions, 1 + events))]


def _differences(values: Counts) -> Counts:
    """Return each number less the one before it, the first one less 0, modulo 2^64."""
    return np.diff(values, prepend=np.zeros(1, np.uint64))


def _columns(columns: Sequence[Array]) -> bytes:
    return _table(np.stack([column.astype(np.uint64) for column in columns], axis=1))


def _rows(rows: Sequence[Counts], columns: int) -> Counts:
    return np.array(rows, np.uint64).reshape(-1, columns)


def _table(rows: Counts) -> bytes:
    """Return a number of rows, and the rows."""
    return _numbers([len(rows)]) + encode_varints(rows.ravel())


def _numbers(numbers: Sequence[int]) -> bytes:
    return encode_varints(np.array(numbers, np.uint64))
