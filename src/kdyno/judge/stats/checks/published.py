"""Does a published statistic follow from the published means, and from the values? Checked to the last printed digit.

A printed number stands for all that round to it; a statistic follows if some of those numbers give it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Protocol

import numpy as np

from kdyno.base.arrays import Values
from kdyno.base.frozen import Frozen
from kdyno.judge.stats.diagnostics import studentized

TABLE_ENDS = (0.001, 0.9)
"""The end of tables of the studentized range; programs print this p, or almost this, for any larger Q."""

NEAR_END = 1e-4

INTERPOLATED = 0.04
"""The relative error that a p from interpolated tables may have; that of the usual approximation is up to 3.6 %."""


class Number(Protocol):
    """A number that is known within limits."""

    @property
    def value(self) -> float: ...

    @property
    def ends(self) -> tuple[float, float]: ...


@dataclass(frozen=True)
class Printed:
    """A number as it was printed: the digits behind the point show its precision."""

    text: str

    @property
    def value(self) -> float:
        return float(self.text)

    @property
    def step(self) -> float:
        """The value of one in its last digit. Raise ValueError if the text is not a number."""
        mantissa, _, exponent = self.text.lower().partition("e")
        return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))

    @property
    def ends(self) -> tuple[float, float]:
        """The limits of the number before it was rounded. Raise ValueError if the text is not a number."""
        half = 0.5 * self.step
        return self.value - half, self.value + half

    @property
    def near(self) -> tuple[float, float]:
        """The limits of the number if digits were cut off, or it was rounded twice. Raise ValueError likewise."""
        return self.value - self.step, self.value + self.step


@dataclass(frozen=True)
class Computed:
    """A number that was computed from values, which were rounded themselves."""

    value: float
    room: float
    """The largest error."""

    @property
    def ends(self) -> tuple[float, float]:
        return self.value - self.room, self.value + self.room


@dataclass(frozen=True)
class PublishedGroup:
    """Mean and standard deviation of n values."""

    mean: Number
    sd: Number
    n: int


@dataclass(frozen=True)
class PrintedGroup(PublishedGroup):
    """Mean and standard deviation as they were printed."""

    mean: Printed
    sd: Printed


Groups = Mapping[str, PublishedGroup]


class Recomputed(Frozen):
    """A pair's statistic, computed from a table."""

    q: float
    low: float
    """The limits of Q, given that its numbers were rounded."""
    high: float
    p: float
    """The p of this Q."""
    follows: bool
    """Whether the published Q is within the limits."""


class PairCheck(Frozen):
    """kdyno's check of one published comparison of two variants (Tukey's)."""

    from_means: Recomputed | None
    """None without means."""
    from_values: Recomputed | None
    """None without values."""
    p_follows: bool | None
    """Whether the published p is that of the published Q; None without a p."""
    resembles: str
    """A pair that would give the published Q, if its own data don't; else empty."""
    sentence: str

    @property
    def q_follows(self) -> bool:
        """Return whether the published Q follows from any data."""
        return any(table is not None and table.follows for table in (self.from_means, self.from_values))


def group_of(values: Values, step: float = 0.0) -> PublishedGroup:
    """Return the group of values that were rounded to multiples of `step`: at least one, in any order."""
    n = len(values)
    sd = float(np.std(values, ddof=1)) if n > 1 else 0.0
    return PublishedGroup(
        Computed(float(np.mean(values)), step / 2), Computed(sd, step / 2 * math.sqrt(n / max(1, n - 1))), n
    )


def check_pair(
    pair: tuple[str, str],
    q: str,
    p: str | None = None,
    *,
    means: Mapping[str, PrintedGroup] | None = None,
    values: Groups | None = None,
) -> PairCheck:
    """Check a published Q of Tukey's test, and its p, against printed means, values or both; one of them must be given.

    All groups of a table belong to the analysis: they make the variance. A Q that follows from no data is looked for
    among the other pairs. Raise ValueError for texts that are not numbers, KeyError for a pair that isn't among the
    groups.
    """
    published = Printed(q)
    tables = [table for table in (means, values) if table is not None]
    from_means, from_values = (None if table is None else _recompute(table, pair, q) for table in (means, values))
    recomputed = [own for own in (from_means, from_values) if own]
    p_follows = None if p is None else any(_p_follows(published.ends, Printed(p), table) for table in tables)
    resembles = ""
    if not any(own.follows for own in recomputed):
        resembles = next((name for table in tables if (name := _resembles(table, pair, q))), "")
    wrong_summary = any(summary_errors(group, (values or {})[name]) for name, group in (means or {}).items() if values)
    parts = _explain_q(published, from_means, from_values, wrong_summary)
    if resembles:
        parts.append(f"it would fit {resembles}")
    if p is not None and not p_follows:
        own_p = [
            f"{own.q:.4g}"
            for own, table in zip(recomputed, tables, strict=True)
            if _p_follows((own.low, own.high), Printed(p), table)
        ]
        but = f", but of Q {own_p[0]}" if own_p else ""
        parts.append(f"p {p} is not that of Q {published.text}{but}")
    sources = " and ".join(["the means and sds"] * (means is not None) + ["the values"] * (values is not None))
    return PairCheck(
        from_means=from_means,
        from_values=from_values,
        p_follows=p_follows,
        resembles=resembles,
        sentence=f"{pair[0]} against {pair[1]}: {'; '.join(parts) or f'follows from {sources}'}",
    )


def fitting(groups: Groups, q: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs whose means give this Q, to within rounding; none if each mean is of one value."""
    if all(group.n == 1 for group in groups.values()):
        return
    ends, variance = Printed(q).ends, _variance_range(groups)
    for first, second in combinations(groups, 2):
        if _overlap(ends, _q_range(groups[first], groups[second], variance)):
            yield first, second


def summary_errors(printed: PrintedGroup, values: PublishedGroup) -> str:
    """Return what is wrong with a printed summary of these values, for a sentence; empty if nothing is.

    One in the last digit is not an error: people cut digits off, and round rounded numbers.
    """
    mean_fits, sd_fits = _stands_for(printed.mean, values.mean), _stands_for(printed.sd, values.sd)
    mean, sd = _as_exactly(values.mean, printed.mean), _as_exactly(values.sd, printed.sd)
    errors = []
    if not mean_fits:
        errors.append(
            f"mean {printed.mean.text} (sd {printed.sd.text}) is not that of the values, {mean} ({sd})"
            if not sd_fits
            else f"mean {printed.mean.text} is not that of the values, {mean}"
        )
    elif not sd_fits:
        spread = _another_spread(printed, values)
        errors.append(f"sd {printed.sd.text} is not that of the values, {sd}{f', but {spread}' if spread else ''}")
    if printed.n != values.n:
        errors.append(f"n {printed.n} is not the number of values, {values.n}")
    return "; ".join(errors)


def _stands_for(printed: Printed, number: Number) -> bool:
    return _overlap(printed.near, number.ends)


def _as_exactly(number: Number, printed: Printed) -> str:
    """Return a number with as many digits behind the point as another one."""
    return f"{number.value:.{max(0, round(-math.log10(printed.step)))}f}"


def _another_spread(printed: PrintedGroup, values: PublishedGroup) -> str:
    """Return the name of the usual measure of spread that was printed instead of the standard deviation, if it is
    one.
    """
    others = {
        "with n instead of n - 1 in the denominator": (values.n - 1) / values.n,
        "their standard error": 1 / values.n,
    }
    for name, share in others.items():
        factor = math.sqrt(share)
        if _stands_for(printed.sd, Computed(values.sd.value * factor, (values.sd.ends[1] - values.sd.value) * factor)):
            return name
    return ""


def _recompute(groups: Groups, pair: tuple[str, str], q: str) -> Recomputed:
    first, second = (groups[name] for name in pair)
    variance = _variance(groups, [group.sd.value for group in groups.values()])
    own = _statistic(abs(first.mean.value - second.mean.value), variance, first.n, second.n)
    low, high = _q_range(first, second, _variance_range(groups))
    return Recomputed(
        q=own,
        low=low,
        high=high,
        p=studentized.tail(own, len(groups), _df(groups)),
        follows=_overlap(Printed(q).ends, (low, high)),
    )


def _q_range(first: PublishedGroup, second: PublishedGroup, variance: tuple[float, float]) -> tuple[float, float]:
    """Return the limits of Q by interval arithmetic: the difference as small as rounding allows over the largest
    variance, and vice versa.
    """
    differences = [a - b for a, b in product(first.mean.ends, second.mean.ends)]
    near = 0.0 if min(differences) < 0 < max(differences) else min(map(abs, differences))
    least, most = variance
    return (
        _statistic(near, most, first.n, second.n),
        _statistic(max(map(abs, differences)), least, first.n, second.n),
    )


def _variance_range(groups: Groups) -> tuple[float, float]:
    low, high = (_variance(groups, [max(0.0, group.sd.ends[end]) for group in groups.values()]) for end in (0, 1))
    return low, high


def _variance(groups: Groups, sds: list[float]) -> float:
    dfs = [group.n - 1 for group in groups.values()]
    return sum(df * sd**2 for df, sd in zip(dfs, sds, strict=True)) / sum(dfs)


def _df(groups: Groups) -> int:
    return sum(group.n - 1 for group in groups.values())


def _statistic(difference: float, variance: float, n: int, m: int) -> float:
    error = math.sqrt(variance / 2 * (1 / n + 1 / m))
    return difference / error if error else float(np.finfo(float).max)


def _p_follows(q: tuple[float, float], p: Printed, groups: Groups) -> bool:
    """Return whether the p belongs to a Q between these: to within rounding, or both beyond the end of a table."""
    low, high = (studentized.tail(max(0.0, end), len(groups), _df(groups)) for end in reversed(q))
    room = max(NEAR_END, INTERPOLATED * p.value)
    ends = min(p.value - room, p.ends[0]), max(p.value + room, p.ends[1])
    if _overlap(ends, (low, high)):
        return True
    least, most = TABLE_ENDS
    return (abs(p.value - least) <= NEAR_END and low <= least) or (abs(p.value - most) <= NEAR_END and high >= most)


def _resembles(groups: Groups, pair: tuple[str, str], q: str) -> str:
    others = (f"{first} against {second}" for first, second in fitting(groups, q) if {first, second} != set(pair))
    return next(others, "")


def _overlap(first: tuple[float, float], second: tuple[float, float]) -> bool:
    return max(first[0], second[0]) <= min(first[1], second[1])


def _explain_q(
    published: Printed, from_means: Recomputed | None, from_values: Recomputed | None, wrong_summary: bool
) -> list[str]:
    """Return which data a Q does not follow from, and whether it or the summary is wrong; nothing if it follows from
    all.
    """
    q = f"Q {published.text}"
    means = (
        f"the means and sds, which give {from_means.q:.4g} "
        f"({from_means.low:.4g} to {from_means.high:.4g} with rounding)"
        if from_means
        else ""
    )
    values = f"the values, which give {from_values.q:.6g}" if from_values else ""
    if from_means is None or from_values is None:
        own = from_means or from_values
        return [] if own is None or own.follows else [f"{q} does not follow from {means or values}"]
    match from_means.follows, from_values.follows:
        case True, True:
            return []
        case False, True:
            wrong = "the summary is wrong" if wrong_summary else "the summary has too few digits"
            return [f"{q} follows from the values, not from {means}: {wrong}, not the statistic"]
        case True, False:
            wrong = "it was made from a wrong summary" if wrong_summary else "it was made from rounded means"
            return [f"{q} follows from the means and sds, not from {values}: {wrong}"]
        case _:
            wrong = "neither it nor the summary matches these values" if wrong_summary else "the statistic is wrong"
            return [f"{q} follows neither from {means}, nor from {values}: {wrong}"]
