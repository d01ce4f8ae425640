"""How throughput grows with the number n of processes or CPUs: Amdahl's law and the Universal Scalability Law, fitted.

    X(n) = X1 · n / (1 + a (n - 1) + b n (n - 1))

a is contention, the part of the work done one after the other; b is coherency, the cost of each pair of processes
(Gunther, "Guerrilla Capacity Planning", 2007). Amdahl's law (1967) is b = 0, and a is then the serial fraction s <= 1.

The fit is of ln X, by least squares, and all replicates have equal weights. Intervals are from a bootstrap of cases:
whole blocks are drawn where blocks (or layouts) are known, else replicates within each n.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kdyno.base.frozen import Frozen

MISFIT = 0.01
"""Below this p a curve misses the means by more than their spread explains."""

Array = NDArray[np.float64]
Law = Literal["amdahl", "usl"]
Bound = Literal["lowest", "highest"] | None
TITLES: dict[Law, str] = {"amdahl": "Amdahl", "usl": "USL"}
NEEDED: dict[Law, int] = {"amdahl": 2, "usl": 3}
"""Different n."""


class Parameter(Frozen):
    """One number of a law, with its interval."""

    value: float
    low: float | None
    """None if there is no interval: see `Fit.no_interval`."""
    high: float | None
    bound: Bound
    """Whether the value is the lowest or highest that the law allows: the data may want it beyond."""


class Peak(Frozen):
    """The n of the greatest throughput; 1 if it falls from the first process on."""

    n: float
    low: float | None
    high: float | None
    """None if there is no interval, and if `open`."""
    open: bool
    """Whether the interval has no upper end: throughput may never fall."""
    extrapolated: bool
    """Whether it lies beyond the measured n."""


class Prediction(Frozen):
    """Throughput by the law."""

    n: int
    throughput: float
    low: float | None
    high: float | None
    extrapolated: bool
    """Whether n is beyond the measured range."""


class LawFit(Frozen):
    """The fit of one law."""

    law: Law
    single: Parameter
    """X1, the throughput of one process; extrapolated if `smallest` isn't 1."""
    contention: Parameter
    """The parameter a; the serial fraction s of Amdahl's law."""
    coherency: Parameter | None
    """The parameter b; None for Amdahl's law."""
    peak: Peak | None
    """None if throughput never falls: b = 0."""
    smallest: int
    """The range of n that was measured."""
    largest: int
    residual_sd: float
    """Standard deviation of ln(measured / fitted), without the part that blocks share: 0.01 is about 1 %."""
    misfit_p: float | None
    """The p of the hypothesis that the curve goes through the true means (lack-of-fit F test). None if n takes no more
    values than the law has parameters, or if the spread at one n is unknown.
    """
    aicc: float | None
    """Akaike's criterion, corrected for few values; less is better. None for an exact fit, and for too few values."""
    no_interval: str
    """The reason for missing intervals; empty if there are intervals."""
    curve: tuple[Prediction, ...]
    """Points over the measured range, and beyond it up to the requested n."""

    def at(self, n: float) -> float:
        """Return the throughput that the law gives for n; `knows` says whether that is near the measured ones."""
        return float(
            curve_at(n, self.single.value, self.contention.value, self.coherency.value if self.coherency else 0)
        )


def curve_at(n: float, single: Array | float, a: Array | float, b: Array | float = 0.0) -> Array:
    return np.asarray(single * n / (1 + a * (n - 1) + b * n * (n - 1)), dtype=np.float64)


def peaks_of(values: Array) -> Array:
    """Return n* = sqrt((1 - a) / b), at least 1; infinite for b = 0, unless a says that throughput falls from the first
    on.
    """
    a, b = values.T
    with np.errstate(divide="ignore", invalid="ignore"):
        peaks = np.sqrt(np.maximum(1 - a, 0) / b)
    return np.where(a >= 1, 1.0, np.maximum(peaks, 1.0))
