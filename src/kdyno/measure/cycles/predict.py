"""Cycles from events: a weighted sum. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.measure.cycles.family import Family


def cycles(events: NDArray[Any], names: Sequence[str], family: Family) -> NDArray[np.float64]:
    """Return modelled cycles, f64[...], of counts events[..., E] whose columns are `names`.

    An event that wasn't counted adds nothing: counts of events=edges give a lower bound.
    """
    return weigh(events, names, family.weights)


def weigh(events: NDArray[Any], names: Sequence[str], weights: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the weighted sum over the last axis of events[..., E]."""
    column = np.array([weights.get(name, 0.0) for name in names], np.float64)
    return np.asarray(np.asarray(events, np.float64) @ column, np.float64)


def parts(events: NDArray[Any], names: Sequence[str], family: Family) -> dict[str, float]:
    """Return the cycles that each event adds to one vector of counts, events[E]; the largest first."""
    added = {name: float(count) * family.weights.get(name, 0.0) for name, count in zip(names, events, strict=True)}
    return dict(sorted(((name, cycles) for name, cycles in added.items() if cycles > 0), key=lambda item: -item[1]))
