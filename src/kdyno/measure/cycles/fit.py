"""Weights from measurements: the cycles of an event, from programs whose events and native cycles are known.

Non-negative least squares on the relative error. Each program is a row, divided by the geometric mean of its native and
its modelled cycles, so that twice and half as much weigh the same, and long programs weigh no more than short ones;
programs that are off by more than a third count less (Huber). Both need the modelled cycles, which come from the
previous round. Further rows tie the weights to their defaults (ridge). Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.measure.cycles.events import UNSEEN

Array = NDArray[Any]

PULL = 0.3
"""The strength with which weights are tied to their defaults. Chosen by cross-validation within the programs that are
fitted to: from 0.1 to 1 they are predicted equally well, below that worse.
"""
STRAY = 0.3
"""A limit for the logarithm of modelled / native: a program that is further off counts less."""
ROUNDS = 60
LEAST = 0.05
"""A share of the native cycles: a model that gives less in a round counts as giving that much."""
NOT_FITTED = (*UNSEEN, "user_instructions", "user_rep_iterations")


def fit(
    counts: Array,
    native: Array,
    names: Sequence[str],
    defaults: Mapping[str, float],
    pull: float = PULL,
    fitted: Collection[str] | None = None,
) -> dict[str, float]:
    """Return cycles per event, from counts[P, E] with columns `names` and native cycles[P].

    Weights of the events in `fitted`, or else of those that a program shows, are sought among the events in `defaults`;
    others keep their defaults. Events that are not in `defaults` still weigh nothing.
    """
    from scipy.optimize import nnls

    counts, native = np.asarray(counts, np.float64), np.asarray(native, np.float64)
    candidates = find_shown_events(counts, names) if fitted is None else fitted
    fitted = [name for name in candidates if defaults.get(name)]
    if not fitted:
        return dict(defaults)
    fixed = {name: weight for name, weight in defaults.items() if name not in fitted}
    prior = np.array([defaults[name] for name in fitted])
    # Unknowns are multiples of the defaults.
    rows = counts[:, [names.index(name) for name in fitted]] * prior
    fixed_part = counts @ np.array([fixed.get(name, 0.0) for name in names])
    ridge = np.sqrt(pull * len(native) / len(fitted)) * np.eye(len(fitted))
    multiples = np.ones(len(fitted))
    for _ in range(ROUNDS):
        modelled = np.maximum(rows @ multiples + fixed_part, LEAST * native)
        distances = np.maximum(np.abs(np.log(modelled / native)), 1e-9)
        scale = np.sqrt(np.minimum(1, STRAY / distances) / (modelled * native))
        previous = multiples
        multiples, _residual = nnls(
            np.vstack([rows * scale[:, None], ridge]), np.concatenate([(native - fixed_part) * scale, ridge.diagonal()])
        )
        if np.allclose(previous, multiples, rtol=1e-5, atol=1e-7):
            break
    weights = {**fixed, **dict(zip(fitted, (multiples * prior).tolist(), strict=True))}
    return {name: weights[name] for name in defaults}


def find_shown_events(counts: Array, names: Sequence[str]) -> list[str]:
    """Return the events whose weights a fit can find: those that some program causes."""
    return [name for column, name in enumerate(names) if name not in NOT_FITTED and counts[:, column].any()]


def find_fixed_events(defaults: Collection[str], counts: Array, names: Sequence[str]) -> tuple[str, ...]:
    """Return the weighed events whose weights are unchanged, because no program shows them."""
    fitted = find_shown_events(counts, names)
    return tuple(name for name in defaults if name not in fitted)
