"""Why a model and a processor differ about a path: cycles on both, and the causes of the model's difference. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from kdyno.base.frozen import Frozen
from kdyno.base.text import format_list
from kdyno.judge.stats.compare import Comparison
from kdyno.measure.cycles.budget import Budget, Unit
from kdyno.understand.explain.figures import SMALLEST, amount, change
from kdyno.understand.explain.model import Pair
from kdyno.understand.explain.records import BYTES_OF_KIB

CAUSES = 4
"""The most causes of a path that are shown."""


class PathReason(Frozen):
    """One path of one variant, in cycles per unit of work, on the processor and in the model."""

    variant: str
    path: str
    unit: Unit
    silicon: Pair
    """The medians of the processor's boots."""
    model: Pair
    """The median repetition of one boot."""
    causes: dict[str, float]
    """By event, the largest first: the modelled cycles that the variant adds; they add up to the model's difference."""


def path_reason(comparison: Comparison, baseline: Budget, variant: Budget) -> PathReason | None:
    """Return the reason of a path; None if the processor's comparison has no values."""
    values = comparison.baseline_value, comparison.variant_value
    if not (values[0] and values[1]):
        return None
    silicon = Pair(baseline=_cycles(values[0], comparison), variant=_cycles(values[1], comparison))
    before, after = _by_event(baseline), _by_event(variant)
    differences = {event: after.get(event, 0.0) - before.get(event, 0.0) for event in {**before, **after}}
    return PathReason(
        variant=comparison.variant,
        path=comparison.benchmark,
        unit=variant.unit,
        silicon=silicon,
        model=Pair(baseline=baseline.cycles, variant=variant.cycles),
        causes=dict(sorted(differences.items(), key=lambda item: (-abs(item[1]), item[0]))),
    )


def _cycles(value: float, comparison: Comparison) -> float:
    """Return the cycles of an operation, or of a KiB for a bandwidth in bytes per cycle."""
    return value if comparison.direction == "lower" else BYTES_OF_KIB / value


def _by_event(budget: Budget) -> Mapping[str, float]:
    return {event: cycles for spent in budget.categories for event, cycles in spent.events.items()}


def reason_lines(reasons: Iterable[PathReason]) -> list[str]:
    """Return two lines for each path: cycles on both, and the causes of the model's difference."""
    return [line for reason in reasons for line in _lines(reason)]


def _lines(reason: PathReason) -> Sequence[str]:
    head = (
        f"{reason.path}: this processor {_pair(reason.silicon)}, the model {_pair(reason.model)} cycles per "
        f"{reason.unit}"
    )
    shown = {event: cycles for event, cycles in list(reason.causes.items())[:CAUSES] if abs(cycles) >= SMALLEST}
    texts = [f"{event} {change(cycles)}" for event, cycles in shown.items()]
    rest = reason.model.difference - math.fsum(shown.values())
    if len(reason.causes) > len(shown) and abs(rest) >= SMALLEST:
        texts.append(f"others {change(rest)}")
    return head, f"  {format_list(texts, CAUSES + 1) or 'no event differs'}"


def _pair(pair: Pair) -> str:
    return f"{amount(pair.baseline)} -> {amount(pair.variant)} ({change(pair.difference)})"
