"""The PMU record: what the emulated PMU counted in one boot, read as the hostile input that it is.

A line `kdyno-pmu 1`, a line of JSON (the header), and a zlib stream of LEB128 numbers (the body); docs/profiles.md
describes all of it. The guest decides what is counted, so every number and length is checked before it is used.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, ValidationError

from kdyno.errors import InfrastructureError, UserError
from kdyno.files import read_whole, write_whole
from kdyno.frozen import Frozen
from kdyno.instrument.pmu_limits import LONGEST_NAME, MOST, Room, in_words
from kdyno.instrument.pmu_values import Counts, Unsound, Values, unzigzag

MAGIC = b"kdyno-pmu "
VERSION = b"1"
LONGEST_HEADER = 1 << 20
LARGEST_FILE = MOST["body_bytes"] + 2 * LONGEST_HEADER
"""Bytes: what can't be compressed takes a little more room than it has bytes."""

CONTEXTS = ("task", "exception", "interrupt")
BLOCK = np.dtype([("start", "<u8"), ("instructions", "<u4"), ("last", "<u4"), ("length", "<u4"), ("count", "<u8")])
"""A straight run of instructions: `last` is the offset of its last instruction, `length` its bytes."""
BRANCH = np.dtype([("source", "<u8"), ("target", "<u8"), ("kind", "u1"), ("count", "<u8")])
"""A taken transfer; `source` is the address of the instruction."""
TRACE_BLOCK = np.dtype(
    [("start", "<u8"), ("last", "<u4"), ("length", "<u4"), ("ops", "<u4"), ("is_branch", "?"), ("time", "<u4")]
)
"""`last` is the offset of the last instruction, `length` its bytes; `is_branch`: the last instruction is a branch;
`time`: from when the block was there until all of it was dispatched, in TIME_PARTS of a cycle; a mean."""
TIME_PARTS = 16
THROUGH, TAKEN, UNEXPECTED, ENTERED = range(4)
"""How a block came after another: it lies behind it; by a taken branch; by either, mispredicted; otherwise."""
CONDITIONAL, JUMP, CALL, RETURN, INDIRECT_JUMP, INDIRECT_CALL = range(6)
"""Kinds of branches."""
STACK_CALL, STACK_EXCEPTION, STACK_INTERRUPT, STACK_ENTRY = range(4)
"""Kinds of stack nodes: how its function was entered."""
UNKNOWN = "[unknown]"
"""The function, at address 0, of code that is in no function of the vmlinux."""

Array = NDArray[Any]


class NoSuchRecord(UserError):
    message = "can't read the PMU record {path}: {why}"
    hint = "`kdyno profile record` makes one"


class PmuRecordDamaged(InfrastructureError):
    message = "the PMU record {path} is damaged: {why}"
    hint = "record it again"


class NotAPmuRecord(PmuRecordDamaged):
    message = "{path} is not a PMU record"
    hint = "`kdyno profile record` makes one"


class OtherPmuRecordVersion(PmuRecordDamaged):
    message = "{path} is a PMU record of version {version}, but this kdyno reads version 1"
    hint = "use the kdyno that made it, or record it again"


class PmuRecordCutShort(PmuRecordDamaged):
    message = "the PMU record {path} is cut short after {size} bytes"
    hint = "record it again; was the disk full, or QEMU killed?"


class NoRegions(InfrastructureError):
    message = "{path} has no regions: the guest executed no markers"
    hint = "agent and plugin must be of one release; did the boot come as far as its first benchmark?"


class PluginGaveUp(InfrastructureError):
    message = "{path}: the PMU plugin gave up: more than {most:,} {things}"
    hint = "no sound kernel or program makes so many, so that its counts can't be used"


class MarkersNeverClosed(InfrastructureError):
    message = "{path}: the region of benchmark {benchmark}, iteration {iteration}, was never closed"
    hint = "the guest stopped inside it, and its counts can't be used; the boot's console says how it ended"


@dataclass(frozen=True, slots=True)
class Function:
    address: int
    size: int
    name: str


@dataclass(frozen=True, eq=False)
class Context:
    """What one context did in one region, summed over its iterations."""

    blocks: Array
    """Of dtype BLOCK."""
    branches: Array
    """Of dtype BRANCH."""
    functions: dict[int, Counts]
    """Index of the function -> events[E] of the code inside it."""


@dataclass(frozen=True, slots=True)
class StackNode:
    parent: int
    """0 for the root, else the 1-based index of an earlier node."""
    function: int
    kind: int
    instructions: int
    """Those of the node itself, without its callees'."""


@dataclass(frozen=True, eq=False)
class Trace:
    """The blocks that one iteration of a region fetched, in their order."""

    blocks: Array
    """Of dtype TRACE_BLOCK, by start."""
    steps: Counts
    """u64[n]: 4 x the index of the block + how it came after the one before (THROUGH ... ENTERED)."""
    left_out: int
    """Further steps that the plugin had no room for."""


@dataclass(frozen=True, eq=False)
class Region:
    """The measured loops of one benchmark."""

    benchmark: int
    iterations: dict[int, Counts]
    """Iteration -> events[3, E], by context."""
    contexts: tuple[Context, Context, Context]
    stacks: tuple[StackNode, ...]
    trace: Trace | None = None
    """Of the last iteration, if the plugin was asked for one."""


@dataclass(frozen=True, eq=False)
class PmuRecord:
    """A whole record; E is the number of `names`."""

    plugin: str
    scope: str
    events: str
    image: str | None
    """SHA-256 of the vmlinux that ran."""
    family: str | None
    names: tuple[str, ...]
    """Of the events, in the order of every vector of counts."""
    opened: int
    unclosed: tuple[int, int] | None
    """Benchmark and iteration."""
    functions: tuple[Function, ...]
    regions: dict[int, Region]
    benchmarks: tuple[str, ...] = ()
    """Names by index; empty if nobody wrote them into the file."""
    merged: int = 1
    """Of how many boots it is."""
    qemu_api: int = 0
    """Version of QEMU's plugin interface."""
    unmeasured: Array | None = None
    """What was executed outside of all regions, of dtype BLOCK; None: the plugin that wrote it didn't look."""

    def benchmark_name(self, benchmark: int) -> str:
        return self.benchmarks[benchmark] if benchmark < len(self.benchmarks) else f"#{benchmark}"


_Count = Annotated[int, Field(ge=0, lt=1 << 63, strict=True)]
_Text = Annotated[str, Field(max_length=100)]
_Event = Annotated[str, Field(pattern=r"^[a-z0-9_]+$", max_length=80)]
_Benchmark = Annotated[str, Field(pattern=r"^[a-z0-9_-]+(\.[a-z0-9_]+)*$", max_length=80)]


class _Open(Frozen):
    benchmark: _Count
    iteration: _Count


class _GaveUp(Frozen):
    of: Annotated[str, Field(pattern=r"^[a-z_]+$", max_length=40)]
    most: _Count


class _Header(Frozen):
    model_config = ConfigDict(extra="ignore")

    plugin: _Text
    qemu_api: _Count
    scope: Literal["kernel", "all", "user"]
    events: Literal["edges", "all", "trace"]
    image: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None
    family: _Text | None
    event_names: Annotated[tuple[_Event, ...], Field(max_length=200)]
    bytes: Annotated[int, Field(ge=0, le=MOST["body_bytes"], strict=True)]
    unclosed: _Open | None
    opened: _Count
    gave_up: _GaveUp | None = None
    unmeasured: bool = False
    benchmarks: Annotated[tuple[_Benchmark, ...], Field(max_length=10_000)] = ()
    merged: Annotated[int, Field(ge=1, le=1 << 31, strict=True)] = 1


def read_pmu_record(path: Path, *, needs_regions: bool = True) -> PmuRecord:
    """Read a record; raises PmuRecordDamaged or one of its kinds, PluginGaveUp, NoRegions, MarkersNeverClosed.

    Without `needs_regions` a record of a boot that marked nothing will do: it has what ran outside of regions.
    """
    data = _bytes_of(path)
    header, body = _split(data, path)
    inflater = zlib.decompressobj()
    try:
        numbers = inflater.decompress(body, header.bytes + 1)
    except zlib.error as error:
        raise PmuRecordDamaged(path=path, why=f"its body doesn't inflate ({error})") from None
    if len(numbers) > header.bytes or inflater.unused_data:
        raise PmuRecordDamaged(path=path, why="it holds more than its header says")
    if not inflater.eof or len(numbers) < header.bytes:
        raise PmuRecordCutShort(path=path, size=len(data))
    if header.gave_up:
        raise PluginGaveUp(path=path, most=header.gave_up.most, things=in_words(header.gave_up.of))
    if header.opened == 0 and needs_regions:
        raise NoRegions(path=path)
    if header.unclosed:
        benchmark = header.unclosed.benchmark
        named = header.benchmarks[benchmark] if benchmark < len(header.benchmarks) else benchmark
        raise MarkersNeverClosed(path=path, benchmark=named, iteration=header.unclosed.iteration)
    try:
        return _record(header, numbers)
    except Unsound as error:
        raise PmuRecordDamaged(path=path, why=error) from None


def with_benchmarks(path: Path, names: Sequence[str], out: Path) -> None:
    """Write the record `path` to `out` (which may be the same) with the names of its benchmarks, by index.

    Raises NotWritable and DiskFull, and what read_pmu_record raises of a file that is no record.
    """
    header, body = _split(_bytes_of(path), path)
    named = json.dumps(header.model_dump() | {"benchmarks": list(names)}, separators=(",", ":"))
    write_whole(out, b"\n".join((MAGIC + VERSION, named.encode(), body)))


def _bytes_of(path: Path) -> bytes:
    try:
        return read_whole(path, LARGEST_FILE)
    except OSError as error:
        raise NoSuchRecord(path=path, why=error.strerror) from error


def _split(data: bytes, path: Path) -> tuple[_Header, bytes]:
    """Header and compressed body; raises all that can be wrong with the first two lines."""
    first = MAGIC + VERSION + b"\n"
    if not data.startswith(first):
        if first.startswith(data):
            raise PmuRecordCutShort(path=path, size=len(data))
        version, newline, _ = data.removeprefix(MAGIC)[:20].partition(b"\n")
        if data.startswith(MAGIC) and newline and version.isdigit():
            raise OtherPmuRecordVersion(path=path, version=version.decode())
        raise NotAPmuRecord(path=path)
    end = data.find(b"\n", len(first), len(first) + LONGEST_HEADER)
    if end < 0 and len(data) <= len(first) + LONGEST_HEADER:
        raise PmuRecordCutShort(path=path, size=len(data))
    try:
        header = _Header.model_validate_json(data[len(first) : end])
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in wrong["loc"]) or "the header"
        problem = "".join(c for c in f"{place}: {wrong['msg']}" if c.isprintable())[:200]
        raise PmuRecordDamaged(path=path, why=problem) from None
    if len(set(header.event_names)) != len(header.event_names) or "instructions" not in header.event_names:
        raise PmuRecordDamaged(path=path, why="event_names: instructions must be there, and no name twice")
    return header, data[end + 1 :]


def _record(header: _Header, body: bytes) -> PmuRecord:
    values, room = Values(body), Room()
    functions = _functions(values, room)
    regions: dict[int, Region] = {}
    latest = -1
    for _ in range(room.take("regions", values.count(1))):
        is_traced = header.events == "trace"
        region = _region(values, room, len(header.event_names), len(functions), is_traced=is_traced)
        if region.benchmark <= latest:
            raise Unsound("its regions are not in order")
        latest = region.benchmark
        regions[latest] = region
    unmeasured = _blocks(values, room) if header.unmeasured else None
    values.expect_end()
    return PmuRecord(
        plugin=header.plugin,
        scope=header.scope,
        events=header.events,
        image=header.image,
        family=header.family,
        names=header.event_names,
        opened=header.opened,
        unclosed=None,
        functions=functions,
        regions=regions,
        benchmarks=header.benchmarks,
        merged=header.merged,
        qemu_api=header.qemu_api,
        unmeasured=unmeasured,
    )


def _functions(values: Values, room: Room) -> tuple[Function, ...]:
    functions = []
    address = 0
    for _ in range(room.take("functions", values.count(3))):
        address = (address + values.number()) & 0xFFFF_FFFF_FFFF_FFFF
        functions.append(Function(address, values.number(), values.text(LONGEST_NAME)))
    return tuple(functions)


def _table(values: Values, room: Room, things: str, columns: int) -> Counts:
    """A number of rows, and the rows."""
    return values.rows(room.take(things, values.count(columns)), columns)


def _region(values: Values, room: Room, events: int, functions: int, *, is_traced: bool) -> Region:
    benchmark = values.number(1 << 31)
    rows = _table(values, room, "iterations", 1 + 3 * events)
    if np.any(rows[1:, 0] <= rows[:-1, 0]):
        raise Unsound("its iterations are not in order")
    contexts = [_context(values, room, events, functions) for _ in CONTEXTS]
    return Region(
        benchmark=benchmark,
        iterations={int(row[0]): row[1:].reshape(3, events) for row in rows},
        contexts=(contexts[0], contexts[1], contexts[2]),
        stacks=_stacks(_table(values, room, "stack_nodes", 4), functions),
        trace=_trace(values, room) if is_traced else None,
    )


def _trace(values: Values, room: Room) -> Trace:
    rows = _table(values, room, "trace_blocks", 5)
    blocks = np.empty(len(rows), TRACE_BLOCK)
    blocks["start"] = np.cumsum(unzigzag(rows[:, 0]), dtype=np.uint64)
    for column, name in enumerate(("last", "length"), start=1):
        blocks[name] = _below(1 << 32, rows[:, column], name)
    blocks["ops"] = _below(1 << 32, rows[:, 3] >> np.uint64(1), "ops")
    blocks["is_branch"] = rows[:, 3] & np.uint64(1)
    blocks["time"] = _below(1 << 32, rows[:, 4], "time")
    steps = _table(values, room, "trace_steps", 1)[:, 0]
    _below(len(blocks), steps >> np.uint64(2), "block of a trace")
    return Trace(blocks, steps, values.number())


def _blocks(values: Values, room: Room) -> Array:
    rows = _table(values, room, "executed_blocks", 5)
    blocks = np.empty(len(rows), BLOCK)
    blocks["start"] = np.cumsum(unzigzag(rows[:, 0]), dtype=np.uint64)
    for column, name in enumerate(("instructions", "last", "length"), start=1):
        blocks[name] = _below(1 << 32, rows[:, column], name)
    blocks["count"] = rows[:, 4]
    return blocks


def _context(values: Values, room: Room, events: int, functions: int) -> Context:
    blocks = _blocks(values, room)
    rows = _table(values, room, "executed_branches", 4)
    branches = np.empty(len(rows), BRANCH)
    branches["source"] = np.cumsum(unzigzag(rows[:, 0]), dtype=np.uint64)
    branches["target"] = branches["source"] + unzigzag(rows[:, 1])
    branches["kind"] = _below(6, rows[:, 2], "kind of branch")
    branches["count"] = rows[:, 3]
    rows = _table(values, room, "executed_functions", 1 + events)
    indices = np.cumsum(_below(max(functions, 1), rows[:, 0], "function"), dtype=np.uint64)
    _below(functions, indices, "function")
    if np.any(rows[1:, 0] == 0):
        raise Unsound("a function comes twice")
    return Context(blocks, branches, {int(index): row[1:] for index, row in zip(indices, rows, strict=True)})


def _stacks(rows: Counts, functions: int) -> tuple[StackNode, ...]:
    if np.any(rows[:, 0] > np.arange(len(rows), dtype=np.uint64)):
        raise Unsound("a stack node comes before its parent")
    _below(functions, rows[:, 1], "function")
    _below(4, rows[:, 2], "kind of stack node")
    depths = [0]
    for parent in rows[:, 0].tolist():
        depths.append(depths[parent] + 1)
    if max(depths) > MOST["stack_depth"]:
        raise Unsound(f"a stack is deeper than {MOST['stack_depth']:,}")
    return tuple(StackNode(*row) for row in rows.tolist())


def _below(limit: int, column: Counts, what: str) -> Counts:
    if column.size and int(column.max()) >= limit:
        raise Unsound(f"{what} {int(column.max())} is out of range")
    return column
