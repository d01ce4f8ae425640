"""Does a published statistic follow from the published means? Checked to the last digit that was printed.

A printed number stands for all that round to it; a statistic follows if some of those numbers give it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from kdyno.frozen import Frozen
from kdyno.judge.diagnostics import studentized

TABLE_ENDS = (0.001, 0.9)
"""Tables of the studentized range end here; programs print them, or nearly, for whatever lies beyond."""

NEAR_END = 1e-4

INTERPOLATED = 0.04
"""How far, as a share of it, a p from interpolated tables may be off; the usual approximation is off by up to 3.6 %."""


@dataclass(frozen=True)
class Printed:
    """A number as it was printed: the digits behind the point say how exactly it is known."""

    text: str

    @property
    def value(self) -> float:
        return float(self.text)

    @property
    def ends(self) -> tuple[float, float]:
        """What it may have been before it was rounded. Raises ValueError if the text is no number."""
        mantissa, _, exponent = self.text.lower().partition("e")
        half = 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        return self.value - half, self.value + half


@dataclass(frozen=True)
class PrintedGroup:
    """Mean and standard deviation of n values, as printed."""

    mean: Printed
    sd: Printed
    n: int


Groups = Mapping[str, PrintedGroup]


class PairCheck(Frozen):
    """What kdyno makes of one published comparison of two variants (Tukey's)."""

    first: str
    second: str
    published_q: float
    published_p: float | None
    q: float
    """Recomputed from means, sds and n as printed."""
    q_low: float
    """What those may have been before rounding allows Q to lie between these."""
    q_high: float
    p: float
    """Of the recomputed Q."""
    q_follows: bool
    p_follows: bool | None
    """Whether the published p is that of the published Q; None without a p."""
    resembles: str = ""
    """A pair whose means would give the published Q, if it doesn't follow from its own."""
    sentence: str


def check_pair(groups: Groups, pair: tuple[str, str], q: str, p: str | None = None) -> PairCheck:
    """Check a published Q of Tukey's test, and its p. `groups` are all of the analysis: they make the variance.

    A Q that doesn't follow is looked for among the other pairs. Raises ValueError for texts that are no numbers,
    KeyError for a pair that isn't among the groups.
    """
    printed_q, printed_p = Printed(q), Printed(p) if p is not None else None
    recomputed = _q(groups, pair)
    low, high = _q_range(groups, pair)
    k, df = len(groups), sum(group.n - 1 for group in groups.values())
    follows = q_fits(groups, pair, q)
    check = PairCheck(
        first=pair[0],
        second=pair[1],
        published_q=printed_q.value,
        published_p=printed_p.value if printed_p else None,
        q=recomputed,
        q_low=low,
        q_high=high,
        p=studentized.tail(recomputed, k, df),
        q_follows=follows,
        p_follows=_p_follows(printed_q, printed_p, k, df) if printed_p else None,
        resembles="" if follows else _resembles(groups, pair, q),
        sentence="",
    )
    return check.model_copy(update={"sentence": _sentence(check)})


def q_fits(groups: Groups, pair: tuple[str, str], q: str) -> bool:
    """Whether the means of this pair give the published Q, to within rounding; never if each is of one value."""
    return any(group.n > 1 for group in groups.values()) and _overlap(Printed(q).ends, _q_range(groups, pair))


def _q(groups: Groups, pair: tuple[str, str]) -> float:
    first, second = (groups[name] for name in pair)
    variance = _variance(groups, [group.sd.value for group in groups.values()])
    return _statistic(abs(first.mean.value - second.mean.value), variance, first.n, second.n)


def _q_range(groups: Groups, pair: tuple[str, str]) -> tuple[float, float]:
    """Interval arithmetic: the difference as small as rounding allows over the largest variance, and vice versa."""
    first, second = (groups[name] for name in pair)
    differences = [a - b for a, b in product(first.mean.ends, second.mean.ends)]
    near = 0.0 if min(differences) < 0 < max(differences) else min(map(abs, differences))
    least, most = (_variance(groups, [max(0.0, group.sd.ends[end]) for group in groups.values()]) for end in (0, 1))
    return (
        _statistic(near, most, first.n, second.n),
        _statistic(max(map(abs, differences)), least, first.n, second.n),
    )


def _variance(groups: Groups, sds: list[float]) -> float:
    dfs = [group.n - 1 for group in groups.values()]
    return sum(df * sd**2 for df, sd in zip(dfs, sds, strict=True)) / sum(dfs)


def _statistic(difference: float, variance: float, n: int, m: int) -> float:
    error = math.sqrt(variance / 2 * (1 / n + 1 / m))
    return difference / error if error else float(np.finfo(float).max)


def _p_follows(q: Printed, p: Printed, k: int, df: int) -> bool:
    """Whether the p belongs to the Q: to within rounding, or both beyond the end of a table."""
    low, high = (studentized.tail(max(0.0, end), k, df) for end in reversed(q.ends))
    room = max(NEAR_END, INTERPOLATED * p.value)
    ends = min(p.value - room, p.ends[0]), max(p.value + room, p.ends[1])
    if _overlap(ends, (low, high)):
        return True
    least, most = TABLE_ENDS
    return (abs(p.value - least) <= NEAR_END and low <= least) or (abs(p.value - most) <= NEAR_END and high >= most)


def _resembles(groups: Groups, pair: tuple[str, str], q: str) -> str:
    for other in combinations(groups, 2):
        if set(other) != set(pair) and q_fits(groups, other, q):
            return f"{other[0]} against {other[1]}"
    return ""


def _overlap(first: tuple[float, float], second: tuple[float, float]) -> bool:
    return max(first[0], second[0]) <= min(first[1], second[1])


def _sentence(check: PairCheck) -> str:
    names = f"{check.first} against {check.second}"
    parts = []
    if not check.q_follows:
        parts.append(
            f"Q {check.published_q:g} does not follow from the means and sds, which give {check.q:.4g} "
            f"({check.q_low:.4g} to {check.q_high:.4g} with rounding)"
        )
    if check.resembles:
        parts.append(f"it would fit {check.resembles}")
    if check.p_follows is False:
        parts.append(f"p {check.published_p:.10g} is not that of Q {check.published_q:.10g}")
    return f"{names}: {'; '.join(parts)}" if parts else f"{names}: follows from the means and sds"
