"""The fit of one law: parameters, intervals, the peak, and a curve to draw."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdyno.judge.stats.estimate import exp
from kdyno.judge.stats.scaling import solver
from kdyno.judge.stats.scaling.bootstrap import Resampled
from kdyno.judge.stats.scaling.laws import Law, LawFit, Parameter, Peak, Prediction, curve_at, peaks_of
from kdyno.judge.stats.scaling.least_squares import Data, basis_of, constants, least_squares, quality

MOST_DRAWN = 64
"""Points of a curve."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Refits:
    """The results of the bootstrap's draws: X1, shape (draws,), and a and b, shape (draws, p)."""

    singles: Array
    values: Array
    tail: float

    def ends(self, drawn: Array) -> tuple[float, float]:
        """Return the ends of the interval of a quantity that was computed for each draw."""
        low, high = np.quantile(drawn, [self.tail, 1 - self.tail], method="nearest")
        return float(low), float(high)

    def curve(self, n: int) -> tuple[float, float]:
        return self.ends(curve_at(n, self.singles, *self.values.T))


def fit_law(law: Law, data: Data, resampled: Resampled | None, no_interval: str, largest: int) -> LawFit:
    basis, scales = basis_of(law, data.n)
    upper = np.full(len(basis), np.inf) if law == "usl" else scales  # s <= 1
    logs = data.logs - np.log(data.n)
    scaled, bounds = least_squares(basis, logs, data.counts, upper)
    single = exp(float(constants(basis, logs[None], data.counts[None], scaled[None])[0]))
    values = scaled / scales
    refits = None if resampled is None else _refits(basis, scales, upper, scaled, data.n, resampled)
    parameters = [
        Parameter(value=float(value), low=ends[0], high=ends[1], bound=bound)
        for place, (value, bound) in enumerate(zip(values, bounds, strict=True))
        for ends in [refits.ends(refits.values[:, place]) if refits else (None, None)]
    ]
    ends = refits.ends(refits.singles) if refits else (None, None)
    missed = float((data.counts * (logs - math.log(single) + np.log1p(scaled @ basis)) ** 2).sum())
    residual_sd, misfit_p, aicc = quality(data, missed, len(basis) + 1)
    return LawFit(
        law=law,
        single=Parameter(value=single, low=ends[0], high=ends[1], bound=None),
        contention=parameters[0],
        coherency=parameters[1] if law == "usl" else None,
        peak=_peak(values, refits, data) if law == "usl" else None,
        smallest=int(data.n[0]),
        largest=int(data.n[-1]),
        residual_sd=residual_sd,
        misfit_p=misfit_p,
        aicc=aicc,
        no_interval=no_interval,
        curve=tuple(_prediction(n, single, values, refits, data) for n in _process_counts(data, largest)),
    )


def _refits(basis: Array, scales: Array, upper: Array, scaled: Array, n: Array, resampled: Resampled) -> _Refits:
    """Return the law fitted to every draw that has enough different n."""
    enough = (resampled.counts > 0).sum(axis=1) > len(basis)
    logs, counts = resampled.logs[enough] - np.log(n), resampled.counts[enough]
    start = np.minimum(np.maximum(scaled, 1e-2), upper)
    refitted = solver.solve(basis, logs, counts, start, upper)
    return _Refits(np.exp(constants(basis, logs, counts, refitted)), refitted / scales, resampled.tail)


def _prediction(n: int, single: float, values: Array, refits: _Refits | None, data: Data) -> Prediction:
    low, high = refits.curve(n) if refits else (None, None)
    return Prediction(
        n=n,
        throughput=float(curve_at(n, single, *values)),
        low=low,
        high=high,
        extrapolated=not data.n[0] <= n <= data.n[-1],
    )


def _process_counts(data: Data, largest: int) -> list[int]:
    """Return the n of a curve's points: all that were measured, the end, and those that a smooth line needs between."""
    between = np.rint(np.geomspace(data.n[0], max(largest, data.n[-1]), MOST_DRAWN)).astype(int).tolist()
    return sorted({*between, *data.n.astype(int).tolist()})


def _peak(values: Array, refits: _Refits | None, data: Data) -> Peak | None:
    """Return the peak; None if throughput never falls."""
    peak = float(peaks_of(values[None])[0])
    if math.isinf(peak):
        return None
    low, high = refits.ends(peaks_of(refits.values)) if refits else (None, None)
    is_open = high is not None and math.isinf(high)
    return Peak(
        n=peak,
        low=None if low is None or math.isinf(low) else low,
        high=None if is_open else high,
        open=is_open,
        extrapolated=not data.n[0] <= peak <= data.n[-1],
    )
