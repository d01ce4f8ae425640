"""Putting tables with one value a row together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kdyno.foreign.frames import joined
from kdyno.foreign.gathered import Directions, Gathered
from kdyno.foreign.readings import LongTable
from kdyno.foreign.replicates import Measured, measured
from kdyno.foreign.request import JudgeRequest
from kdyno.foreign.sheet import is_number
from kdyno.judge.observations import Observations
from kdyno.text import listed

OWN = {"block", "run", "seed", "lane", "elapsed", "work"}
"""Columns by which kdyno's own CSV is recognised: its blocks are boots."""


def gather(tables: Sequence[LongTable], request: JudgeRequest) -> Gathered:
    """Put the tables of all files together. Raises MixedUnits and BlockTwice."""
    columns: dict[str, str] = {}
    unused: dict[str, None] = {}
    for table in tables:
        columns |= table.roles.shown()
        unused |= dict.fromkeys(table.roles.unused)
    own = {*unused, *columns} >= OWN
    frame = joined([table.frame for table in tables])
    if len(tables) > 1 and "order" in frame and all(is_number(str(place)) for place in frame["order"].cat.categories):
        frame = frame.drop(columns="order")  # counted anew in each file, it doesn't say which file came first
    benchmarks, notes = measured(frame)
    directions = Directions(request)
    observations = tuple(
        Observations(
            benchmark=benchmark.name,
            unit=benchmark.unit,
            direction=directions.of(benchmark.name, benchmark.unit, benchmark.direction),
            description=benchmark.name,
            groups=benchmark.samples,
        )
        for benchmark in benchmarks
    )
    return Gathered(
        observations=observations,
        notes=(*notes, *_unused(unused, own), *directions.notes),
        columns=columns,
        boots="" if own else _boots(benchmarks, columns),
        days={benchmark.name: benchmark.days for benchmark in benchmarks if benchmark.days},
    )


def _unused(columns: Iterable[str], own: bool) -> tuple[str, ...]:
    return (f"columns that weren't used: {listed(list(columns), 20)}",) if columns and not own else ()


def _boots(benchmarks: Sequence[Measured], columns: Mapping[str, str]) -> str:
    """What isn't known of the boots."""
    if "boot" in columns:
        lone = [variant for benchmark in benchmarks for variant, count in benchmark.boots.items() if count == 1]
        return f"only one boot each of {', '.join(dict.fromkeys(lone))}" if lone else ""
    if "block" in columns:
        return "nothing says whether each block is another boot"
    return "nothing says how many boots these values come from"
