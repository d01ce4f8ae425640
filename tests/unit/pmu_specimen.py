"""A small PMU record with numbers that can be added up by hand, and the encoder of the format.

Benchmark 0, lat_syscall.null: the system call calls a function that loops twice and ends in a tail jump; a page fault
and a timer tick come in between. Benchmark 2, lat_pipe.roundtrip: the same function once, called through a pointer.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kdyno.measure.guest.pmu_parts import (
    BLOCK,
    BRANCH,
    CALL,
    CONDITIONAL,
    ENTERED,
    INDIRECT_CALL,
    JUMP,
    RETURN,
    STACK_CALL,
    STACK_ENTRY,
    STACK_EXCEPTION,
    STACK_INTERRUPT,
    TAKEN,
    THROUGH,
    TRACE_BLOCK,
    UNEXPECTED,
    ContextCounts,
    Function,
    Region,
    StackNode,
    Trace,
)
from kdyno.measure.guest.pmu_record import PmuRecord

NAMES = ("instructions", "calls", "privilege_switches")
IMAGE = "ab" * 32
TEXT = 0xFFFF_FFFF_8100_0000

ENTRY, WORK, COLD, TAIL, FAULT, TICK = (TEXT + offset for offset in (0x1000, 0x2000, 0x3000, 0x4000, 0x5000, 0x6000))
FUNCTIONS = (
    Function(0, 0, "[unknown]"),
    Function(ENTRY, 0x100, "entry_SYSCALL_64"),
    Function(WORK, 0x80, "do_work.constprop.0"),
    Function(COLD, 0x10, "do_work.constprop.0.cold"),
    Function(TAIL, 0x20, "finish"),
    Function(FAULT, 0x40, "asm_exc_page_fault"),
    Function(TICK, 0x40, "asm_sysvec_apic_timer_interrupt"),
)
MODULE = 0xFFFF_FFFF_C000_0000
"""Code that no symbol covers."""

Row = tuple[int, ...]


def context(
    blocks: Sequence[Row] = (), branches: Sequence[Row] = (), functions: Mapping[int, Sequence[int]] | None = None
) -> ContextCounts:
    """Blocks are (start, instructions, last, length, count), branches (source, target, kind, count)."""
    return ContextCounts(
        blocks=np.array(sorted(blocks), BLOCK),
        branches=np.array(sorted(branches), BRANCH),
        functions={index: np.array(events, np.uint64) for index, events in (functions or {}).items()},
    )


def iteration(*contexts: Sequence[int]) -> Any:
    """Events of one iteration, [3, E]."""
    return np.array(contexts, np.uint64)


def specimen() -> PmuRecord:
    syscall = context(
        blocks=[
            (ENTRY, 4, 0x0C, 0x11, 10),  # ends in the call
            (ENTRY + 0x11, 2, 2, 4, 10),  # comes back there
            (WORK, 3, 6, 8, 20),  # the loop's body, entered and repeated
            (WORK + 8, 1, 0, 5, 10),  # the tail jump
            (TAIL, 2, 4, 5, 10),
            (MODULE, 5, 9, 10, 1),
        ],
        branches=[
            (ENTRY + 0x0C, WORK, CALL, 10),
            (WORK + 6, WORK, CONDITIONAL, 10),
            (WORK + 8, TAIL, JUMP, 10),
            (WORK + 6, COLD, CONDITIONAL, 1),
            (TAIL + 4, ENTRY + 0x11, RETURN, 10),
            (MODULE + 9, WORK, CALL, 1),
        ],
        functions={0: (5, 1, 0), 1: (60, 10, 10), 2: (70, 0, 0), 4: (20, 0, 0)},
    )
    fault = context(blocks=[(FAULT, 6, 0x10, 0x12, 5)], functions={5: (30, 0, 0)})
    tick = context(blocks=[(TICK, 8, 0x1C, 0x20, 2)], functions={6: (16, 0, 0)})
    null = Region(
        benchmark=0,
        iterations={0: iteration((75, 6, 5), (12, 0, 0), (16, 0, 0)), 1: iteration((80, 5, 5), (18, 0, 0), (0, 0, 0))},
        contexts=(syscall, fault, tick),
        stacks=(
            StackNode(0, 1, STACK_ENTRY, 60),
            StackNode(1, 2, STACK_CALL, 70),
            StackNode(2, 4, STACK_CALL, 20),
            StackNode(2, 5, STACK_EXCEPTION, 30),
            StackNode(4, 6, STACK_INTERRUPT, 16),
            StackNode(0, 0, STACK_CALL, 5),
        ),
    )
    through_pointer = context(
        blocks=[(WORK, 3, 6, 8, 4)],
        branches=[(ENTRY + 0x20, WORK, INDIRECT_CALL, 4)],
        functions={2: (12, 0, 0)},
    )
    pipe = Region(
        benchmark=2,
        iterations={0: iteration((12, 0, 0), (0, 0, 0), (0, 0, 0))},
        contexts=(through_pointer, context(), context()),
        stacks=(StackNode(0, 2, STACK_CALL, 12),),
    )
    return PmuRecord(
        plugin="0.1.0",
        scope="kernel",
        events="edges",
        image=IMAGE,
        family=None,
        names=NAMES,
        opened=3,
        unclosed=None,
        functions=FUNCTIONS,
        regions={0: null, 2: pipe},
        benchmarks=("lat_syscall.null", "lat_syscall.read", "lat_pipe.roundtrip"),
    )


def traced() -> PmuRecord:
    """The specimen with the sequence of blocks of one system call."""
    record = specimen()
    blocks = [
        (ENTRY, 0x0C, 0x11, 4, False, True, 40),
        (WORK, 6, 8, 3, False, True, 8),
        (WORK + 8, 0, 5, 1, True, True, 2),
    ]
    steps = np.array([0 << 2 | ENTERED, 1 << 2 | TAKEN, 1 << 2 | UNEXPECTED, 2 << 2 | THROUGH], np.uint64)
    trace = Trace(np.array(blocks, TRACE_BLOCK), steps, 7)
    regions = {index: replace(region, trace=trace) for index, region in record.regions.items()}
    return replace(record, events="trace", regions=regions)


def write(path: Path, record: PmuRecord | None = None, **changes: Any) -> Path:
    """The specimen, or another record, as a file, with some fields changed."""
    path.write_bytes(encode(replace(record or specimen(), **changes)))
    return path


def encode(record: PmuRecord) -> bytes:
    """The record as the bytes of a file, version 1."""
    body = encode_body(record)
    header = {
        "plugin": record.plugin,
        "qemu_api": 1,
        "scope": record.scope,
        "events": record.events,
        "image": record.image,
        "family": record.family,
        "event_names": list(record.names),
        "bytes": len(body),
        "unclosed": record.unclosed and dict(zip(("benchmark", "iteration"), record.unclosed, strict=True)),
        "opened": record.opened,
        "gave_up": None,
        **({"benchmarks": list(record.benchmarks)} if record.benchmarks else {}),
        **({"unmeasured": True} if record.unmeasured is not None else {}),
    }
    return encoded(header, body)


def encoded(header: Mapping[str, Any], body: bytes) -> bytes:
    return b"kdyno-pmu 2\n" + json.dumps(header).encode() + b"\n" + zlib.compress(body)


def encode_body(record: PmuRecord) -> bytes:
    out = bytearray(varint(len(record.functions)))
    before = 0
    for function in record.functions:
        name = function.name.encode()
        out += varints([function.address - before, function.size, len(name)]) + name
        before = function.address
    out += varint(len(record.regions))
    for region in record.regions.values():
        out += varints([region.benchmark, len(region.iterations)])
        for number, events in region.iterations.items():
            out += varints([number, *events.flatten().tolist()])
        for part in region.contexts:
            out += _context(part)
        out += varint(len(region.stacks))
        for node in region.stacks:
            out += varints([node.parent, node.function, node.kind, node.instructions])
        if region.trace:
            out += _trace(region.trace)
    if record.unmeasured is not None:
        out += _blocks(record.unmeasured)
    return bytes(out)


def _trace(trace: Trace) -> bytes:
    out = bytearray(varint(len(trace.blocks)))
    before = 0
    for start, last, length, ops, is_call, is_branch, time in trace.blocks.tolist():
        out += varints([zigzag(start - before), last, length, ops << 2 | is_call << 1 | is_branch, time])
        before = start
    return bytes(out + varint(len(trace.steps)) + varints(trace.steps.tolist()) + varint(trace.left_out))


def _blocks(blocks: Any) -> bytes:
    out = bytearray(varint(len(blocks)))
    before = 0
    for start, *rest in blocks.tolist():
        out += varints([zigzag(start - before), *rest])
        before = start
    return bytes(out)


def _context(part: ContextCounts) -> bytes:
    out = bytearray(_blocks(part.blocks))
    out += varint(len(part.branches))
    before = 0
    for source, target, kind, count in part.branches.tolist():
        out += varints([zigzag(source - before), zigzag(target - source), kind, count])
        before = source
    out += varint(len(part.functions))
    before = 0
    for index, events in part.functions.items():
        out += varints([index - before, *events.tolist()])
        before = index
    return bytes(out)


def zigzag(number: int) -> int:
    """Of a difference modulo 2^64, taken as the signed number nearest to 0."""
    number = (number + (1 << 63)) % (1 << 64) - (1 << 63)
    return (number << 1) ^ (number >> 63) if number >= 0 else ((-number) << 1) - 1


def varints(numbers: Iterable[int]) -> bytes:
    return b"".join(map(varint, numbers))


def varint(number: int) -> bytes:
    """Unsigned LEB128."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
