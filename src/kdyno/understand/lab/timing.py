"""Times the candidates of a family on this processor: cells of one kind of call, in blocks of different link orders."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kdyno.base import process
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.files import read_whole
from kdyno.base.measurement import INT64_MAX
from kdyno.base.talk import Advance
from kdyno.kernel.routines.families import MOST_SIZE, Mode, Offsets, RoutineFamily, SizeClass
from kdyno.understand.lab.build import RoutineBench, RoutineBuild

LINE = 64
LINES_OF_PAGE = 4096 // LINE
REQUESTS = 48
"""The number of different calls of a cell; MOST_REQUESTS of data/lab/harness/timing.c is the limit."""
LOAD_CELLS = 8
"""The number of cells that a distribution of sizes is drawn for."""
MOST_DISTRIBUTION_BYTES = 16 << 20
Request = tuple[int, int, int]
"""A size, and the offsets of both addresses in their pages."""


class RoutineTimingFailed(InfrastructureError):
    message = "the program that times {family} failed: {why}"
    hint = "run the command again with -v to see the program"


class SizesUnreadable(UserError):
    message = "{path}:{line}: {why}"
    hint = "write a line `size,count` for each size, with a heading of these words"


@dataclass(frozen=True)
class CallCell:
    """Calls that are timed together."""

    name: str
    mode: Mode
    requests: tuple[Request, ...]
    size_class: SizeClass | None
    """The class that it is of; None: all calls have one size, or the sizes of a load."""
    fixed: tuple[int, Offsets] | None
    """The size and the offsets of all its calls; None if they differ."""


@dataclass(frozen=True, eq=False)
class RoutineTimes:
    """The times of a family."""

    build: RoutineBuild
    cells: tuple[CallCell, ...]
    """The cells of the last block: those of the others have the same names."""
    cycles: NDArray[np.float64]
    """Cycles of the core per call, of shape (blocks, cells, candidates)."""


def plan_cells(
    family: RoutineFamily, rng: np.random.Generator, distribution: Sequence[tuple[int, float]] = ()
) -> list[CallCell]:
    """Return the cells of a family: one for each size and offsets, for each class, and those of a load."""
    cells = []
    for mode in family.modes:
        for size in family.sizes:
            for offsets in family.offsets:
                request = [_request(size, offsets, rng) for _ in range(REQUESTS)]
                name = f"{size:,} at {offsets[0]},{offsets[1]}, {mode}"
                cells.append(CallCell(name, mode, tuple(request), None, (size, offsets)))
        for low, high in family.classes:
            sizes = np.exp(rng.uniform(np.log(low + 1), np.log(high + 2), REQUESTS)).astype(int) - 1
            cells.append(
                CallCell(f"{class_name((low, high))}, {mode}", mode, _mixed(family, sizes, rng), (low, high), None)
            )
        if distribution:
            drawn = _draw_sizes(distribution, LOAD_CELLS * REQUESTS, rng)
            for number in range(LOAD_CELLS):
                sizes = drawn[number * REQUESTS : (number + 1) * REQUESTS]
                cells.append(CallCell(f"{LOAD} {number}, {mode}", mode, _mixed(family, sizes, rng), None, None))
    return cells


LOAD = "load"
"""The beginning of the names of cells with the sizes of a load."""


def class_name(size_class: SizeClass) -> str:
    """Return `17-64`."""
    low, high = size_class
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def _mixed(family: RoutineFamily, sizes: Iterable[int], rng: np.random.Generator) -> tuple[Request, ...]:
    """Return a request for each size, with offsets of the family: each of them is as frequent as any other."""
    return tuple(_request(int(size), family.offsets[rng.integers(len(family.offsets))], rng) for size in sizes)


def _request(size: int, offsets: Offsets, rng: np.random.Generator) -> Request:
    """Return a request in a random line of a page: addresses of equal low bits would be a case of its own."""
    to, from_line = (LINE * int(line) for line in rng.integers(LINES_OF_PAGE, size=2))
    return size, to + offsets[0], from_line + offsets[1]


def _draw_sizes(distribution: Sequence[tuple[int, float]], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return sizes of a distribution in random order, by systematic sampling: rare sizes are as rare as there."""
    sizes = np.array([size for size, _ in distribution], np.int64)
    shares = np.cumsum([weight for _, weight in distribution])
    places = (np.arange(count) + rng.uniform()) / count * shares[-1]
    return np.asarray(rng.permutation(sizes[np.searchsorted(shares, places, side="right").clip(max=len(sizes) - 1)]))


def read_distributions(path: Path) -> dict[str, list[tuple[int, float]]]:
    """Return sizes with their numbers of calls by family, from CSV with the columns size and count, and maybe routine.

    Without that column the sizes are those of any family, and the key is empty. Sizes above MOST_SIZE, which the
    harness has no memory for, are left out. Raises SizesUnreadable.
    """
    try:
        text = read_whole(path, MOST_DISTRIBUTION_BYTES).decode()
    except OSError as error:
        raise SizesUnreadable(path=path, line=1, why=error.strerror) from error
    except UnicodeDecodeError as error:
        raise SizesUnreadable(path=path, line=1, why="it is not text in UTF-8") from error
    reader = csv.DictReader(io.StringIO(text))
    rows: dict[str, list[tuple[int, float]]] = {}
    try:
        if not {"size", "count"} <= set(reader.fieldnames or ()):
            raise SizesUnreadable(path=path, line=1, why="expected a heading with `size` and `count`")
        for row in reader:
            size, count = row["size"] or "", row["count"] or ""
            if not (size.isdecimal() and count.isdecimal() and int(count) <= INT64_MAX):
                why = f"expected a size and a count, got {size[:20]!r} and {count[:20]!r}"
                raise SizesUnreadable(path=path, line=reader.line_num, why=why)
            if int(size) > MOST_SIZE:
                continue
            rows.setdefault(row.get("routine") or "", []).append((int(size), float(count)))
    except (csv.Error, ValueError) as error:
        raise SizesUnreadable(path=path, line=reader.line_num, why=str(error)) from error
    counted = {name: sizes for name, sizes in rows.items() if sum(count for _, count in sizes)}
    if not counted:
        raise SizesUnreadable(path=path, line=reader.line_num, why="there are no calls")
    return counted


def time_routines(
    bench: RoutineBench,
    build: RoutineBuild,
    blocks: int,
    seed: int,
    advance: Advance,
    *,
    distribution: Sequence[tuple[int, float]] = (),
) -> RoutineTimes:
    """Time all candidates in all cells. Raises RoutineTimingFailed.

    Each block is a process of a program with another link order, and draws other sizes for its cells of mixed ones.
    """
    rng = np.random.default_rng((seed, *build.family.name.encode()))
    rows = []
    for block in range(blocks):
        advance(block, blocks, build.family.name)
        cells = plan_cells(build.family, rng, distribution)
        program = bench.link(build, block, rng)
        text = "".join(map(cell_text, cells))
        done = process.attempt([program, "time", str(int(rng.integers(1 << 62)))], stdin=text, guarded=True)
        if done.returncode:
            raise RoutineTimingFailed(family=build.family.name, why=done.stderr.strip() or f"status {done.returncode}")
        rows.append(read_cycles(done.stdout, (len(cells), len(build.built))))
        program.unlink()
    return RoutineTimes(build, tuple(cells), np.stack(rows))


def cell_text(cell: CallCell) -> str:
    """Return a cell in the harness's form."""
    requests = "".join(f"{size} {to} {from_}\n" for size, to, from_ in cell.requests)
    return f"{cell.mode} {len(cell.requests)}\n{requests}"


def read_cycles(output: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the cycles of each cell and candidate from the harness's output. Pure."""
    cycles = np.full(shape, np.nan)
    for line in islice(output.splitlines(), shape[0] * shape[1]):
        cell, candidate, value = line.split()
        cycles[int(cell), int(candidate)] = float(value)
    return cycles
