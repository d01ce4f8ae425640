"""Compares one region of two PMU records. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from kdyno.measure.cycles.budget import Unit
from kdyno.measure.cycles.family import Family
from kdyno.measure.cycles.predict import cycles
from kdyno.understand.explain.footprint import footprint
from kdyno.understand.explain.inlining import inlining
from kdyno.understand.explain.measured import INTERRUPT, Floats, FunctionBody, MeasuredRegion, refuse_unlike
from kdyno.understand.explain.model import EventChange, Explanation, FunctionChange, Pair

ALIGNING = re.compile(r"its_return_thunk|__x86_indirect_its_thunk_\w+")
"""Functions of arch/x86/lib/retpoline.S."""


@dataclass(frozen=True)
class ComparedSubject:
    """The names of the compared benchmark, kernels and boots."""

    benchmark: str
    baseline: str
    variant: str
    unit: Unit
    boots: str


def explain(subject: ComparedSubject, baseline: MeasuredRegion, variant: MeasuredRegion, family: Family) -> Explanation:
    """Return the differences between two measured regions. Raises RecordsUnlike."""
    refuse_unlike((subject.baseline, baseline.record), (subject.variant, variant.record))
    names = variant.record.names
    weights: Floats = np.asarray(cycles(np.eye(len(names)), names, family), dtype=np.float64)
    instructions = variant.column("instructions")
    before, after = baseline.events, variant.events
    ticks = baseline.totals[INTERRUPT], variant.totals[INTERRUPT]
    is_one_image = bool(baseline.record.image) and baseline.record.image == variant.record.image
    functions = function_changes(baseline.bodies, variant.bodies, weights, instructions)
    return Explanation(
        benchmark=subject.benchmark,
        baseline=subject.baseline,
        variant=subject.variant,
        unit=subject.unit,
        boots=subject.boots,
        counted="edges" if variant.record.events == "edges" else "all",
        family=family.name,
        modelled=family.caption(),
        instructions=_pair(before[instructions], after[instructions]),
        cycles=_weighted_pair(before, after, weights),
        interrupt_instructions=_pair(ticks[0][instructions], ticks[1][instructions]),
        interrupt_cycles=_weighted_pair(*ticks, weights),
        events=event_changes(names, before, after, weights),
        functions=functions,
        inlining=inlining(baseline, variant),
        footprint=footprint(baseline, variant),
        notes=() if is_one_image else tuple(_thunk_notes(functions, subject.unit)),
    )


def _thunk_notes(functions: Iterable[FunctionChange], unit: Unit) -> Iterator[str]:
    """Yield a note if returns and branches use a thunk only because of their addresses.

    Linux has these thunks against indirect target selection, for branches in the lower half of a cache line.
    """
    changes = [change.instructions.difference for change in functions if ALIGNING.fullmatch(change.function)]
    if any(changes):
        yield (
            f"{sum(changes):+,.1f} instructions per {unit} are of thunks for returns and branches in the lower half of "
            "a cache line (indirect target selection): their addresses depend on the linker; `layouts = 6` in the "
            "experiment separates that from the change"
        )


def event_changes(names: tuple[str, ...], before: Floats, after: Floats, weights: Floats) -> tuple[EventChange, ...]:
    """Return the events that occurred, the largest part of the difference first. All arrays have the shape (E,)."""
    changes = [
        EventChange(
            event=name,
            amount=_pair(before[index], after[index]),
            cycles=weights[index] * (after[index] - before[index]),
        )
        for index, name in enumerate(names)
        if before[index] or after[index]
    ]
    return tuple(
        sorted(changes, key=lambda change: (-abs(change.cycles), -abs(change.amount.difference), change.event))
    )


def function_changes(
    before: dict[str, FunctionBody], after: dict[str, FunctionBody], weights: Floats, instructions: int
) -> tuple[FunctionChange, ...]:
    """Return the functions that were executed in either kernel, matched by plain name, the largest difference first."""
    nothing = FunctionBody((), 0, np.zeros(len(weights)))
    changes = []
    for name in before.keys() | after.keys():
        old, new = before.get(name, nothing), after.get(name, nothing)
        clones = sorted({*old.names, *new.names})
        changes.append(
            FunctionChange(
                function=name,
                clones=tuple(clones) if clones != [name] else (),
                instructions=_pair(old.events[instructions], new.events[instructions]),
                cycles=_weighted_pair(old.events, new.events, weights),
                size=_pair(old.size, new.size),
            )
        )
    return tuple(
        sorted(
            changes,
            key=lambda change: (-abs(change.cycles.difference), -abs(change.instructions.difference), change.function),
        )
    )


def _weighted_pair(before: Floats, after: Floats, weights: Floats) -> Pair:
    return _pair(np.dot(before, weights), np.dot(after, weights))


def _pair(baseline: float, variant: float) -> Pair:
    return Pair(baseline=float(baseline), variant=float(variant))
