"""Checks of the tables' assumptions: spread, normality, drift, independence. Nothing is decided here."""

from __future__ import annotations

import math

import numpy as np
import scipy

from kdyno.base.arrays import Labels, Values
from kdyno.judge.stats.diagnostics.blocks import block_values, residuals
from kdyno.judge.stats.diagnostics.groups import groups_of, sd_ratio
from kdyno.judge.stats.diagnostics.tables import Assumptions, Residual
from kdyno.judge.stats.observations import Observations

SHOWN = 2000
"""Residuals in a report."""

LOOKED_AT = 100_000
"""Values of each variant; if there are more, so many are taken at even distances."""

TESTED = 5000
"""Values up to which the p of Shapiro and Wilk is known."""


def assumptions(observed: Observations) -> Assumptions | None:
    """Look at the values of one benchmark. Return None for summaries, and if each variant's values all agree."""
    samples = {name: sample for name in observed.groups if (sample := observed.sample(name))}
    groups = groups_of(observed)
    if not samples or all(group.variance == 0 for group in groups):
        return None
    taken = [_evenly(len(sample.values), LOOKED_AT) for sample in samples.values()]
    logs = [np.log(sample.values[indices]) for sample, indices in zip(samples.values(), taken, strict=True)]
    orders = [
        None if sample.order is None else sample.order[indices]
        for sample, indices in zip(samples.values(), taken, strict=True)
    ]
    names = [name for name, own in zip(samples, logs, strict=True) for _ in own]
    centres = np.concatenate([np.full(len(own), own.mean()) for own in logs])
    rest = np.concatenate(logs) - centres
    recorded = [order for order in orders if order is not None]
    order = np.concatenate(recorded) if len(recorded) == len(orders) else None
    spread = _spread([own for own in logs if len(own) > 1])
    normality = _normality(observed, rest)
    drift = (None, None, None) if order is None else _drift(rest, order)
    return Assumptions(
        sd_ratio=sd_ratio(groups),
        spread_f=spread[0],
        spread_p=spread[1],
        normality_w=normality[0],
        normality_p=normality[1],
        drift=drift[0],
        drift_p=drift[1],
        autocorrelation=drift[2],
        residuals=tuple(
            Residual(
                variant=names[i],
                order=None if order is None else int(order[i]),
                fitted=math.exp(centres[i]),
                percent=100 * math.expm1(min(rest[i], 700.0)),
            )
            for i in _evenly(len(rest), SHOWN)
        ),
    )


def _spread(logs: list[Values]) -> tuple[float | None, float | None]:
    """Return F and p of Brown and Forsythe (1974): an analysis of variance of the distances from the medians."""
    if len(logs) < 2 or all(np.ptp(np.abs(own - np.median(own))) == 0 for own in logs):
        return None, None
    test = scipy.stats.levene(*logs, center="median")
    return _finite(float(test.statistic)), _finite(float(test.pvalue))


def _normality(observed: Observations, rest: Values) -> tuple[float | None, float | None]:
    table = block_values(observed)
    if table is not None and len(table.names) > 1:
        rest = residuals(table)
    rest = rest[_evenly(len(rest), TESTED)]
    if len(rest) < 3 or np.ptp(rest) < 1e-12:
        return None, None
    tested = scipy.stats.shapiro(rest)
    return _finite(tested.statistic), _finite(tested.pvalue)


def _drift(rest: Values, order: Labels) -> tuple[float | None, float | None, float | None]:
    """Return the trend per 100 places and its p, and the correlation of each residual with the next."""
    if len(rest) < 4 or np.ptp(order) == 0 or np.ptp(rest) == 0:
        return None, None, None
    line = scipy.stats.linregress(order.astype(float), rest)
    following = rest[np.argsort(order, kind="stable")]
    following = following - following.mean()
    again = float(following[1:] @ following[:-1] / (following @ following))
    return _finite(math.expm1(min(100 * float(line.slope), 700.0))), _finite(line.pvalue), _finite(again)


def _evenly(n: int, most: int) -> Labels:
    """Return the indices of all of n, or of so many at even distances."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
