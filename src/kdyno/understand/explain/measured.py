"""One region of a PMU record with its work: one side of a comparison."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kdyno.base.errors import UserError
from kdyno.measure.guest.pmu_parts import CONTEXTS, ContextCounts, Function, Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.functions import plain_name

Floats = NDArray[np.float64]

INTERRUPT = CONTEXTS.index("interrupt")


class RecordsUnlike(UserError):
    message = "the PMU records of {baseline} and {variant} cannot be compared: they differ in {what}"
    hint = "boot both with the same plugin, events and CPU family"


@dataclass(frozen=True)
class FunctionBody:
    """The own code of a function with all its clones."""

    names: tuple[str, ...]
    """The symbols in the kernel, sorted."""
    size: int
    """The size in bytes."""
    events: Floats
    """Shape (E,), per unit of work, task and exception context."""


@dataclass(frozen=True)
class MeasuredRegion:
    """A region, and the total work of its iterations."""

    record: PmuRecord
    region: Region
    work: float
    """The work, positive, in the unit of amounts."""

    @cached_property
    def totals(self) -> Floats:
        """Events by context, per unit of work; shape (3, E)."""
        iterations = [counts.astype(np.float64) for counts in self.region.iterations.values()]
        none = np.zeros((len(CONTEXTS), len(self.record.names)))
        return np.sum(iterations, axis=0) / self.work if iterations else none

    @property
    def events(self) -> Floats:
        """Events of task and exception context, per unit of work; shape (E,)."""
        total: Floats = self.totals.sum(axis=0) - self.totals[INTERRUPT]
        return total

    @property
    def contexts(self) -> Iterator[ContextCounts]:
        """The counts of task and exception context."""
        return (context for number, context in enumerate(self.region.contexts) if number != INTERRUPT)

    @cached_property
    def bodies(self) -> dict[str, FunctionBody]:
        """The executed functions by plain name; functions of one name in several files count as one."""
        events_by_name: dict[str, dict[int, Floats]] = defaultdict(dict)
        for context in self.contexts:
            for index, events in context.functions.items():
                by_index = events_by_name[plain_name(self.record.functions[index].name)]
                by_index[index] = by_index.get(index, np.zeros(len(events))) + events
        return {name: self._body(by_index) for name, by_index in events_by_name.items()}

    def _body(self, by_index: dict[int, Floats]) -> FunctionBody:
        functions: list[Function] = [self.record.functions[index] for index in by_index]
        return FunctionBody(
            names=tuple(sorted({function.name for function in functions})),
            size=sum(function.size for function in functions),
            events=np.sum(list(by_index.values()), axis=0) / self.work,
        )

    def column(self, event: str) -> int:
        return self.record.names.index(event)


def refuse_unlike(baseline: tuple[str, PmuRecord], variant: tuple[str, PmuRecord]) -> None:
    """Raise RecordsUnlike unless both records count the same events on the same hardware."""
    (baseline_name, old), (variant_name, new) = baseline, variant
    alike = {
        "events": old.events == new.events and old.names == new.names,
        "the CPU family": old.family == new.family,
        "scope": old.scope == new.scope,
    }
    if differing := [aspect for aspect, equal in alike.items() if not equal]:
        raise RecordsUnlike(baseline=baseline_name, variant=variant_name, what=", ".join(differing))
