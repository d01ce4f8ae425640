"""Running kdyno-blocks (crates/blocks), which orders the blocks of functions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kdyno.base import process
from kdyno.base.errors import InfrastructureError
from kdyno.base.installed import find_program

BINARY = "kdyno-blocks"


class BlocksFailed(InfrastructureError):
    message = "kdyno-blocks failed: {why}"
    hint = "run `pip install .` in a checkout of kdyno to rebuild it"


@dataclass(frozen=True)
class HotBlocks:
    """The blocks of a function to lay out: the entry first, the others in their present order."""

    ids: tuple[int, ...]
    sizes: tuple[int, ...]
    """Bytes."""
    counts: tuple[int, ...]
    """Executions."""
    edges: tuple[tuple[int, int, int], ...]
    """The indices of two blocks in `ids`, and the count of the edge from the first to the second."""


def find_blocks() -> Path:
    """Return the path of the program that lays out blocks. Raises ProgramMissing."""
    return find_program(BINARY, "Propeller's layout of blocks")


def order_blocks(functions: Sequence[HotBlocks]) -> list[tuple[int, ...]]:
    """Return the block ids of each function in their new order. Raises ProgramMissing and BlocksFailed."""
    lines = [
        json.dumps({"sizes": function.sizes, "counts": function.counts, "edges": function.edges})
        for function in functions
    ]
    done = process.attempt([find_blocks()], stdin="".join(f"{line}\n" for line in lines), guarded=True)
    if done.returncode != 0:
        raise BlocksFailed(why=done.stderr.strip() or f"status {done.returncode}")
    orders = [json.loads(line) for line in done.stdout.splitlines()]
    return [tuple(function.ids[place] for place in order) for function, order in zip(functions, orders, strict=True)]
