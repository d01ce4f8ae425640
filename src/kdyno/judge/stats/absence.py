"""Why a benchmark of two variants could not be compared."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.judge.stats.observations import Observations

NO_BLOCK = "no block in which both were measured"


def absence_reason(observed: Observations, variants: Sequence[str]) -> str:
    """Return the reason that the values alone show, where no record of boots says more."""
    for variant in variants:
        if observed.sample(variant) is None and observed.summary(variant) is None:
            return f"no value of {variant}"
    return NO_BLOCK
