"""How throughput grows with the number n of processes or CPUs: Amdahl's law and the Universal Scalability Law, fitted.

    X(n) = X1 · n / (1 + a (n - 1) + b n (n - 1))

a is contention, the part of the work done one after the other; b is coherency, what each pair of processes costs
(Gunther, "Guerrilla Capacity Planning", 2007). Amdahl's law (1967) is b = 0, and a is then the serial fraction s <= 1.

What is fitted is ln X, by least squares, and every replicate weighs alike. Intervals are from a bootstrap of cases:
whole blocks are drawn where blocks (or layouts) are known, else replicates within each n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from kdyno.errors import UserError
from kdyno.frozen import Frozen
from kdyno.judge import logratio, scaling_solver
from kdyno.judge.contrast import contrast_of, log_ratio
from kdyno.judge.estimate import CONFIDENCE, exp
from kdyno.judge.logratio import LogRatio
from kdyno.judge.observations import Labels, Observations, Sample

DRAWS = 2000
SEED = 19670418
FEWEST = 5
"""Fewer blocks, or degrees of freedom, are drawn all alike too often to have a 97.5 % point."""
LARGEST_N = 999_999
TOLD_APART = 2.0
"""Models whose AICc differs by less are not told apart (Burnham and Anderson, 2002)."""
MISFIT = 0.01
"""Below this p a curve misses the means by more than their spread explains."""
MOST_DRAWN = 64
"""Points of a curve."""
ON_BOUND = 1e-9
"""So near to a bound, as a fraction of what parameters can do at the largest n, a parameter is on it."""
EXACT = 1e-20
"""Squares of ln X per value below which a curve fits exactly: what rounding in doubles leaves."""

Array = NDArray[np.float64]
Law = Literal["amdahl", "usl"]
Bound = Literal["lowest", "highest"] | None
TITLES: dict[Law, str] = {"amdahl": "Amdahl", "usl": "USL"}
NEEDED: dict[Law, int] = {"amdahl": 2, "usl": 3}
"""Different n."""


class NoSuchCount(UserError):
    message = "throughput at n = {n}: n is a number of processes, a whole number from 1 to {most:,}"
    hint = "give the number of processes or CPUs that each value was measured with"


class NotAscending(UserError):
    message = "n = {n} comes after n = {before}: the numbers of processes must ascend, each at most once"
    hint = "sort the values by n, and put all values of one n together"


class UnusableThroughput(UserError):
    message = "throughput at n = {n}, value {place}: {value} is not a positive number"
    hint = "leave this value out; curves are fitted to logarithms"


class NoThroughput(UserError):
    message = "no throughput at {where}"
    hint = "every n needs at least one value"


@dataclass(frozen=True)
class Level:
    """All replicates at one number of processes."""

    n: int
    sample: Sample
    """Throughputs: work per time, finite and positive. Blocks or layouts say what was measured together."""


class Point(Frozen):
    """What was measured at one n."""

    n: int
    replicates: int
    throughput: float
    """The geometric mean."""
    low: float | None
    """Ends of its interval, by t of the logarithms. None for one replicate, or where all agree exactly."""
    high: float | None
    speedup: float | None
    """Throughput over that of n = 1; within blocks where these are known. None where n = 1 wasn't measured."""
    speedup_low: float | None
    speedup_high: float | None
    efficiency: float | None
    """Speed-up over n."""


class Parameter(Frozen):
    """One number of a law, with its interval."""

    value: float
    low: float | None
    """None where there is no interval: see `Fit.no_interval`."""
    high: float | None
    bound: Bound
    """Whether the value is the lowest or highest that the law allows: the data may want it beyond."""


class Peak(Frozen):
    """Where throughput is greatest; 1 where it falls from the first process on."""

    n: float
    low: float | None
    high: float | None
    """None where there is no interval, and where `open`."""
    open: bool
    """Whether the interval has no upper end: throughput may never fall."""
    extrapolated: bool
    """Whether it lies beyond what was measured."""


class Prediction(Frozen):
    """Throughput by the law."""

    n: int
    throughput: float
    low: float | None
    high: float | None
    extrapolated: bool
    """Whether n is beyond what was measured."""


class Fit(Frozen):
    """One law, fitted."""

    law: Law
    single: Parameter
    """X1, the throughput of one process; extrapolated where `smallest` isn't 1."""
    contention: Parameter
    """a; of Amdahl's law the serial fraction s."""
    coherency: Parameter | None
    """b; None for Amdahl's law."""
    peak: Peak | None
    """None where throughput never falls: b = 0."""
    smallest: int
    """The range of n that was measured."""
    largest: int
    residual_sd: float
    """Standard deviation of ln(measured / fitted), without what blocks share: 0.01 is about 1 %."""
    misfit_p: float | None
    """Of the hypothesis that the curve goes through the true means (lack-of-fit F test). None where n takes no more
    values than the law has parameters, or where nothing is known of the spread at one n."""
    aicc: float | None
    """Akaike's criterion, corrected for few values; less is better. None for an exact fit, and for too few values."""
    no_interval: str
    """Why there are no intervals; empty if there are."""
    curve: tuple[Prediction, ...]
    """Over the measured range, and beyond it up to where it was asked for."""

    def at(self, n: float) -> float:
        """The throughput that the law gives for n; see `knows` for whether that was measured near."""
        return float(_curve(n, self.single.value, self.contention.value, self.coherency.value if self.coherency else 0))

    def knows(self, n: float) -> bool:
        """Whether n lies within what was measured; anything else is an extrapolation."""
        return self.smallest <= n <= self.largest


class Scaling(Frozen):
    """The scaling of one workload: what was measured, and both laws."""

    confidence: float
    points: tuple[Point, ...]
    drawn: Literal["blocks", "layouts", "replicates"]
    """What the bootstrap draws."""
    amdahl: Fit | None
    no_amdahl: str
    """Why it can't be fitted; empty if it is."""
    usl: Fit | None
    no_usl: str
    aicc_gain: float | None
    """AICc of Amdahl's law less that of the USL: above 0 the USL is the better description. None if not known."""
    better: Law | None
    """None where they aren't told apart."""

    @property
    def fits(self) -> tuple[Fit, ...]:
        return tuple(fit for fit in (self.amdahl, self.usl) if fit is not None)


def scaling(levels: Sequence[Level], largest: int | None = None, draws: int = DRAWS, seed: int = SEED) -> Scaling:
    """Fit both laws. `largest`: also predict up to this n; predictions beyond the measured range are marked.

    Raises NoThroughput, NoSuchCount, NotAscending and UnusableThroughput.
    """
    require_usable(levels)
    drawn, labels = _drawn(levels)
    data = _Data.of(levels)
    no_interval = _no_interval(levels, labels, drawn)
    resampled = None if no_interval else _resampled(levels, labels, draws, np.random.default_rng(seed))
    fits: dict[Law, Fit] = {}
    reasons: dict[Law, str] = {"amdahl": "", "usl": ""}
    for law, needed in NEEDED.items():
        if len(levels) < needed:
            reasons[law] = f"{TITLES[law]} needs {needed} different n, and there {_are(len(levels))}"
        else:
            fits[law] = _fit(law, data, resampled, no_interval, max(largest or 0, levels[-1].n))
    amdahl, usl = fits.get("amdahl"), fits.get("usl")
    gain = amdahl.aicc - usl.aicc if amdahl and usl and None not in (amdahl.aicc, usl.aicc) else None  # type: ignore[operator]
    return Scaling(
        confidence=CONFIDENCE,
        points=_points(levels),
        drawn=drawn,
        amdahl=amdahl,
        no_amdahl=reasons["amdahl"],
        usl=usl,
        no_usl=reasons["usl"],
        aicc_gain=gain,
        better=None if gain is None or abs(gain) < TOLD_APART else "usl" if gain > 0 else "amdahl",
    )


def require_usable(levels: Sequence[Level]) -> None:
    """Raise NoThroughput, NoSuchCount, NotAscending or UnusableThroughput, naming n and value; values count from 1."""
    if not levels:
        raise NoThroughput(where="any n")
    before = 0
    for level in levels:
        if isinstance(level.n, bool) or level.n != level.n // 1 or not 1 <= level.n <= LARGEST_N:
            raise NoSuchCount(n=level.n, most=LARGEST_N)
        if level.n <= before:
            raise NotAscending(n=level.n, before=before)
        values = level.sample.values
        if not len(values):
            raise NoThroughput(where=f"n = {level.n}")
        for place in np.flatnonzero(~((values > 0) & (values < np.inf)))[:1]:
            raise UnusableThroughput(n=level.n, place=place + 1, value=f"{values[place]:g}")
        before = level.n


def ratio_of(level: Level, base: Level) -> tuple[float, float | None, float | None]:
    """Throughput over another one's, with the ends of its interval: within blocks where both have them."""
    observed = Observations("", "", "higher", "", {"level": level.sample, "base": base.sample})
    contrast = contrast_of(observed, "level", "base")
    if contrast is None:  # not one block has both
        logs = [np.log(sample.values) for sample in (level.sample, base.sample)]
        return _interval(logratio.of_groups(logs[0], logs[1]))
    return _interval(log_ratio(contrast))


@dataclass(frozen=True)
class _Data:
    """Everything that a fit is made of, whatever the law; arrays of shape (k,), k the number of different n."""

    n: Array
    counts: Array
    """Replicates."""
    logs: Array
    """Means of ln X."""
    pure: float
    """Sum of squares of ln X around these means, without what blocks share."""
    pure_df: int
    """Its degrees of freedom."""

    @classmethod
    def of(cls, levels: Sequence[Level]) -> _Data:
        logs = [np.log(level.sample.values) for level in levels]
        means = np.array([_mean(own) for own in logs])
        pure = float(sum(((own - mean) ** 2).sum() for own, mean in zip(logs, means, strict=True)))
        df = sum(len(own) - 1 for own in logs)
        if (orders := _orders_of_blocks(levels)) is not None:
            table = np.array([own[order] for own, order in zip(logs, orders, strict=True)])
            rest = table - means[:, None]
            shared = rest.mean(axis=0)
            pure, df = float(((rest - shared) ** 2).sum()), df - (len(shared) - 1)
        return cls(
            n=np.array([level.n for level in levels], dtype=np.float64),
            counts=np.array([len(own) for own in logs], dtype=np.float64),
            logs=means,
            pure=pure,
            pure_df=df,
        )


@dataclass(frozen=True)
class _Resampled:
    """Bootstrap draws: means of ln X and how many values they are of, both of shape (draws, k)."""

    logs: Array
    counts: Array
    tail: float
    """The share of draws below the lower end of an interval, and above the upper one."""


@dataclass(frozen=True)
class _Refits:
    """What the draws of the bootstrap give: X1, shape (draws,), and a and b, shape (draws, p)."""

    singles: Array
    values: Array
    tail: float

    def ends(self, drawn: Array) -> tuple[float, float]:
        """The ends of the interval of what was computed for each draw."""
        low, high = np.quantile(drawn, [self.tail, 1 - self.tail], method="nearest")
        return float(low), float(high)

    def curve(self, n: int) -> tuple[float, float]:
        return self.ends(_curve(n, self.singles, *self.values.T))


def _fit(law: Law, data: _Data, resampled: _Resampled | None, no_interval: str, largest: int) -> Fit:
    basis, scales = _basis(law, data.n)
    upper = np.full(len(basis), np.inf) if law == "usl" else scales  # s <= 1
    logs = data.logs - np.log(data.n)
    scaled, bounds = _least_squares(basis, logs, data.counts, upper)
    single = exp(float(_constants(basis, logs[None], data.counts[None], scaled[None])[0]))
    values = scaled / scales
    refits = None if resampled is None else _refits(basis, scales, upper, scaled, data.n, resampled)
    parameters = [
        Parameter(value=float(value), low=ends[0], high=ends[1], bound=bound)
        for place, (value, bound) in enumerate(zip(values, bounds, strict=True))
        for ends in [refits.ends(refits.values[:, place]) if refits else (None, None)]
    ]
    ends = refits.ends(refits.singles) if refits else (None, None)
    missed = float((data.counts * (logs - math.log(single) + np.log1p(scaled @ basis)) ** 2).sum())
    residual_sd, misfit_p, aicc = _quality(data, missed, len(basis) + 1)
    return Fit(
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
        curve=tuple(_prediction(n, single, values, refits, data) for n in _places(data, largest)),
    )


def _refits(basis: Array, scales: Array, upper: Array, scaled: Array, n: Array, resampled: _Resampled) -> _Refits:
    """The law fitted to every draw that has enough different n."""
    enough = (resampled.counts > 0).sum(axis=1) > len(basis)
    logs, counts = resampled.logs[enough] - np.log(n), resampled.counts[enough]
    start = np.minimum(np.maximum(scaled, 1e-2), upper)
    refitted = scaling_solver.solve(basis, logs, counts, start, upper)
    return _Refits(np.exp(_constants(basis, logs, counts, refitted)), refitted / scales, resampled.tail)


def _prediction(n: int, single: float, values: Array, refits: _Refits | None, data: _Data) -> Prediction:
    low, high = refits.curve(n) if refits else (None, None)
    return Prediction(
        n=n,
        throughput=float(_curve(n, single, *values)),
        low=low,
        high=high,
        extrapolated=not data.n[0] <= n <= data.n[-1],
    )


def _basis(law: Law, n: Array) -> tuple[Array, Array]:
    """n - 1 and n (n - 1), scaled so that the largest is 1, shape (p, k); and what they were divided by, shape (p,)."""
    rows = np.array([n - 1, n * (n - 1)] if law == "usl" else [n - 1])
    scales = rows[:, -1]
    return rows / scales[:, None], scales


def _least_squares(basis: Array, logs: Array, counts: Array, upper: Array) -> tuple[Array, list[Bound]]:
    """The scaled parameters, and which of them are on a bound; the best from two starts."""
    roots = np.sqrt(counts)

    def residuals(parameters: Array) -> Array:
        left = logs + np.log1p(parameters[1:] @ basis) - parameters[0]
        return np.asarray(roots * left, dtype=np.float64)

    def slopes(parameters: Array) -> Array:
        divisors = 1 + parameters[1:] @ basis
        return np.asarray((roots * np.vstack([-np.ones_like(logs), basis / divisors])).T, dtype=np.float64)

    def fitted(start: Array) -> optimize.OptimizeResult:
        constant = _constants(basis, logs[None], counts[None], start[None])
        return optimize.least_squares(
            residuals,
            np.concatenate([constant, start]),
            jac=slopes,
            bounds=([-np.inf] + [0.0] * len(basis), [np.inf, *upper]),
            method="dogbox",
            xtol=1e-14,
            ftol=1e-14,
            gtol=1e-14,
        )

    relative = roots * np.exp(logs - logs.max())  # n / X is linear in the parameters, and as precise as it is large
    linear, _ = optimize.nnls((np.vstack([np.ones_like(logs), basis]) * relative).T, roots)
    starts = [np.full(len(basis), 0.1)]
    if linear[0] > 0:
        starts.append(np.asarray(linear[1:] / linear[0], dtype=np.float64))
    best = min((fitted(np.minimum(start, upper)) for start in starts), key=lambda result: float(result.cost))
    scaled = np.asarray(best.x[1:], dtype=np.float64)
    lowest, highest = scaled <= ON_BOUND, scaled >= upper * (1 - ON_BOUND)
    bounds: list[Bound] = [
        "lowest" if low else "highest" if high else None for low, high in zip(lowest, highest, strict=True)
    ]
    return np.where(lowest, 0.0, np.where(highest, upper, scaled)), bounds


def _constants(basis: Array, logs: Array, counts: Array, parameters: Array) -> Array:
    """ln X1 of each draw: the weighted mean of what the law leaves over."""
    left = logs + np.log1p(parameters @ basis)
    return np.asarray((counts * left).sum(axis=1) / counts.sum(axis=1), dtype=np.float64)


def _curve(n: float, single: Array | float, a: Array | float, b: Array | float = 0.0) -> Array:
    return np.asarray(single * n / (1 + a * (n - 1) + b * n * (n - 1)), dtype=np.float64)


def _places(data: _Data, largest: int) -> list[int]:
    """The n at which a curve is given: all that were measured, the end, and what a smooth line needs between."""
    between = np.rint(np.geomspace(data.n[0], max(largest, data.n[-1]), MOST_DRAWN)).astype(int).tolist()
    return sorted({*between, *data.n.astype(int).tolist()})


def _peak(values: Array, refits: _Refits | None, data: _Data) -> Peak | None:
    """None where throughput never falls."""
    peak = float(_peaks(values[None])[0])
    if math.isinf(peak):
        return None
    low, high = refits.ends(_peaks(refits.values)) if refits else (None, None)
    is_open = high is not None and math.isinf(high)
    return Peak(
        n=peak,
        low=None if low is None or math.isinf(low) else low,
        high=None if is_open else high,
        open=is_open,
        extrapolated=not data.n[0] <= peak <= data.n[-1],
    )


def _peaks(values: Array) -> Array:
    """n* = sqrt((1 - a) / b), at least 1; infinite for b = 0, unless a says that throughput falls from the first on."""
    a, b = values.T
    with np.errstate(divide="ignore", invalid="ignore"):
        peaks = np.sqrt(np.maximum(1 - a, 0) / b)
    return np.where(a >= 1, 1.0, np.maximum(peaks, 1.0))


def _quality(data: _Data, missed: float, parameters: int) -> tuple[float, float | None, float | None]:
    """The residual spread, the p of a lack-of-fit F test, and AICc. `missed`: weighted squares of means off the curve.

    What blocks share is no residual: it is taken out, and its degrees of freedom with it.
    """
    levels = len(data.n)
    left = data.pure_df + levels - parameters
    total = data.pure + missed
    if total <= EXACT * (levels + data.pure_df):
        return 0.0, None, None
    residual_sd = math.sqrt(total / left) if left else 0.0
    misfit_p = None
    if levels > parameters and data.pure_df and data.pure > 0:
        ratio = missed / (levels - parameters) / (data.pure / data.pure_df)
        misfit_p = float(special.fdtrc(levels - parameters, data.pure_df, ratio))
    values, k = data.pure_df + levels, parameters + 1  # the spread is one of them
    if values - k - 1 <= 0:
        return residual_sd, misfit_p, None
    return residual_sd, misfit_p, values * math.log(total / values) + 2 * k + 2 * k * (k + 1) / (values - k - 1)


def _points(levels: Sequence[Level]) -> tuple[Point, ...]:
    base = levels[0] if levels[0].n == 1 else None
    points = []
    for level in levels:
        throughput, low, high = _interval(logratio.of_differences(np.log(level.sample.values)))
        speedup = None if base is None else (1.0, None, None) if level is base else ratio_of(level, base)
        points.append(
            Point(
                n=level.n,
                replicates=len(level.sample.values),
                throughput=throughput,
                low=low,
                high=high,
                speedup=speedup[0] if speedup else None,
                speedup_low=speedup[1] if speedup else None,
                speedup_high=speedup[2] if speedup else None,
                efficiency=speedup[0] / level.n if speedup else None,
            )
        )
    return tuple(points)


def _interval(ratio: LogRatio) -> tuple[float, float | None, float | None]:
    if not ratio.error or ratio.df is None:
        return exp(ratio.mean), None, None
    reach = float(special.stdtrit(ratio.df, (1 + CONFIDENCE) / 2)) * ratio.error
    return exp(ratio.mean), exp(ratio.mean - reach), exp(ratio.mean + reach)


def _mean(logs: Array) -> float:
    """numpy's mean of equal numbers may differ from them."""
    return float(logs[0]) if logs.min() == logs.max() else float(logs.mean())


def _drawn(levels: Sequence[Level]) -> tuple[Literal["blocks", "layouts", "replicates"], list[Labels] | None]:
    """What the bootstrap draws, and the label of each value; None where values don't belong together."""
    layouts = [level.sample.clusters for level in levels if level.sample.clusters is not None]
    if len(layouts) == len(levels) and len(np.unique(np.concatenate(layouts))) > 1:
        return "layouts", layouts
    blocks = [level.sample.blocks for level in levels if level.sample.blocks is not None]
    if len(blocks) == len(levels) and sum(map(len, blocks)) > len(np.unique(np.concatenate(blocks))):
        return "blocks", blocks
    return "replicates", None


def _orders_of_blocks(levels: Sequence[Level]) -> list[Labels] | None:
    """What sorts the values of each n by block; None unless every block has exactly one value of every n."""
    blocks = [level.sample.blocks for level in levels if level.sample.blocks is not None]
    if len(blocks) < len(levels) or len(levels) < 2 or len(blocks[0]) < 2:
        return None
    first = np.unique(blocks[0])
    alike = all(len(own) == len(first) and np.array_equal(np.sort(own), first) for own in blocks)
    return [np.argsort(own) for own in blocks] if alike else None


def _no_interval(levels: Sequence[Level], labels: list[Labels] | None, drawn: str) -> str:
    """Why no bootstrap can be had; empty if it can."""
    if all(np.ptp(level.sample.values) == 0 for level in levels) and any(
        len(level.sample.values) > 1 for level in levels
    ):
        return "all replicates agree exactly"
    if labels is not None:
        units = len(np.unique(np.concatenate(labels)))
        return f"{units} {drawn} are too few for a bootstrap: it needs {FEWEST}" if units < FEWEST else ""
    lone = [str(level.n) for level in levels if len(level.sample.values) < 2]
    if lone:
        return f"only one value at n = {', '.join(lone)}: nothing says how it spreads"
    spare = sum(len(level.sample.values) - 1 for level in levels)
    if spare < FEWEST:
        return f"{spare + len(levels)} values at {len(levels)} n are too few for a bootstrap"
    return ""


def _resampled(
    levels: Sequence[Level], labels: list[Labels] | None, draws: int, random: np.random.Generator
) -> _Resampled:
    """Draw cases with replacement.

    The percentiles are those of the expanded percentile interval (Hesterberg, 2015): the plain one is too narrow by
    sqrt((r - 1) / r) for r cases, and takes normal quantiles for those of t.
    """
    logs = [np.log(level.sample.values) for level in levels]
    values, k = sum(map(len, logs)), len(levels)
    if labels is None:
        means = np.empty((draws, k))
        for place, own in enumerate(logs):
            means[:, place] = own[random.integers(0, len(own), (draws, len(own)))].mean(axis=1)
        counts = np.tile([float(len(own)) for own in logs], (draws, 1))
        return _Resampled(means, counts, _tail(math.sqrt(values / (values - k)), values - k))
    units = np.unique(np.concatenate(labels))
    sums, sizes = np.zeros((len(units), k)), np.zeros((len(units), k))
    for place, (own, of) in enumerate(zip(logs, labels, strict=True)):
        np.add.at(sums[:, place], np.searchsorted(units, of), own)
        np.add.at(sizes[:, place], np.searchsorted(units, of), 1)
    times = random.multinomial(len(units), np.full(len(units), 1 / len(units)), draws).astype(np.float64)
    counts = times @ sizes
    means = np.divide(times @ sums, counts, out=np.zeros_like(counts), where=counts > 0)
    return _Resampled(means, counts, _tail(math.sqrt(len(units) / (len(units) - 1)), len(units) - 1))


def _tail(factor: float, df: int) -> float:
    """The share of draws beyond an end: that of the normal distribution beyond factor · t."""
    return float(special.ndtr(-factor * special.stdtrit(df, (1 + CONFIDENCE) / 2)))


def _are(count: int) -> str:
    return f"are {count}" if count > 1 else "is one"
