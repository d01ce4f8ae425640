"""Plans made after a pilot, against the noise that there really is: how many have too little power, and what they cost.

All draws are seeded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
from scipy import special

from kdyno.base.arrays import Values
from kdyno.judge.stats.estimate import CONFIDENCE, exp
from kdyno.judge.stats.planning import bound, power
from kdyno.judge.stats.planning.design import Bounds, Costs, plan
from kdyno.judge.stats.planning.levels import Components, components

Others = Literal["as noisy", "quiet"]
"""What the other benchmarks of the run are like."""

Pilot = Literal["6 blocks", "6 blocks of 5 readings", "6 layouts twice"]
PILOTS: tuple[Pilot, ...] = get_args(Pilot)

AIM, TOO_LITTLE = 0.9, 0.8
"""The power that is asked for, and what is too little of it."""

NOISE = 0.01
"""Standard deviation of one replicate's log-ratio, at the topmost level."""
WITHIN = 0.02
"""The same of one reading of the two boots, around them."""
BOOTS = 0.005
"""The same of a boot around its layout."""

TINY = 1e-12
"""A variance next to nothing."""

COSTS = Costs(iteration=1.0, boot=1.0, layout=1.0)
SHAPES: dict[Pilot, tuple[int, int, int]] = {
    "6 blocks": (1, 6, 1),
    "6 blocks of 5 readings": (1, 6, 5),
    "6 layouts twice": (6, 2, 1),
}
"""Layouts, boots of each, readings of each."""
REACH = Bounds(iterations=(1, 20), replicates=(4, 10_000))

Readings = Literal["normal", "one slow in ten"]
READINGS: tuple[Readings, ...] = get_args(Readings)
LIKE_A_GUEST = Costs(iteration=0.2, boot=2.2)
SLOW = math.log(1.5)
"""What a slow reading takes more."""


@dataclass(frozen=True)
class Plans:
    """What became of the plans."""

    too_little_before: float
    """Share of plans on the pilot's estimate whose true power is below 80 %, where 90 % was asked for."""
    too_little: float
    """The same of the plans that kdyno makes, on an upper bound."""
    less_before: float
    """Share whose true power is below the 90 % asked for."""
    less: float
    right: int
    """Blocks of a plan that knew the noise."""
    before: float
    """Time that a plan takes, on average, in that of the plan that knew the noise."""
    now: float


@dataclass(frozen=True)
class Widths:
    """What became of plans for boots that are alike; medians over the plans."""

    blocks: float
    iterations: float
    planned: float
    """Half the width of the 95 % interval at most, says the plan; a fraction."""
    measured: float
    """The same of a run after the plan."""
    kept: float
    """Share of the runs whose interval is no wider than planned."""


@dataclass(frozen=True)
class _Size:
    """What a plan comes to."""

    readings: int
    boots: int
    replicates: int


def plans(pilot: Pilot, benchmarks: int, others: Others, effect: float, draws: int, seed: int) -> Plans:
    """Make a plan after each of `draws` pilots. One of the benchmarks is the noisy one whose power is looked at; the
    others are as noisy, or next to quiet, so that they decide nothing. `effect` is a fraction."""
    random = np.random.default_rng(seed)
    alpha = 0.05 / benchmarks
    known = _trusting(_truth(pilot), effect, alpha)
    powers, seconds = [], []
    for _ in range(draws):
        count = benchmarks if others == "as noisy" else 1
        noisiest = max(
            (_estimated(pilot, random) for _ in range(count)), key=lambda one: bound.estimate_variance(one, 1, 1)
        )
        made = plan(noisiest, COSTS, effect, alpha=alpha, aim=AIM, bounds=REACH)
        boots = max(1, made.boots_per_layout)
        sizes = _trusting(noisiest, effect, alpha), _Size(made.iterations, boots, made.blocks // boots)
        powers.append([_power(pilot, size, effect, alpha) for size in sizes])
        seconds.append([_seconds(pilot, size) for size in sizes])
    reached, mean = np.array(powers), np.mean(seconds, axis=0) / _seconds(pilot, known)
    too_little, less = (reached < TOO_LITTLE).mean(axis=0), (reached < AIM).mean(axis=0)
    return Plans(
        too_little_before=float(too_little[0]),
        too_little=float(too_little[1]),
        less_before=float(less[0]),
        less=float(less[1]),
        right=known.replicates * known.boots,
        before=float(mean[0]),
        now=float(mean[1]),
    )


def widths(readings: Readings, effect: float, draws: int, seed: int) -> Widths:
    """Plan for boots that are all alike, 6 pilot blocks of 11 readings, and measure what was planned."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(draws):
        known = components([list(zip(*_alike(readings, (2, 6, 11), random), strict=True))])
        assert known is not None
        made = plan(known, LIKE_A_GUEST, effect, aim=AIM, bounds=Bounds(iterations=(3, 100)))
        ours, theirs = np.median(_alike(readings, (2, made.blocks, made.iterations), random), axis=2)
        error = float(np.std(ours - theirs, ddof=1)) / math.sqrt(made.blocks)
        measured = exp(float(special.stdtrit(made.blocks - 1, (1 + CONFIDENCE) / 2)) * error) - 1
        rows.append((made.blocks, made.iterations, made.half_width, measured, measured <= made.half_width))
    blocks, iterations, planned, measured = np.median(np.array(rows)[:, :4], axis=0).tolist()
    return Widths(blocks, iterations, planned, measured, float(np.mean([kept for *_, kept in rows])))


def _alike(readings: Readings, shape: tuple[int, ...], random: np.random.Generator) -> Values:
    noise = random.normal(0, NOISE, shape)
    return noise if readings == "normal" else noise + SLOW * (random.random(shape) < 0.1)


def _trusting(variances: Components, effect: float, alpha: float) -> _Size:
    """The plan as it was: what was seen is taken for the truth, at every level."""
    boots = 1
    readings = min(
        range(1, REACH.iterations[1] + 1),
        key=lambda count: (variances.boot + variances.variance_within(count)) * (COSTS.boot + count * COSTS.iteration),
    )
    if variances.layout is not None:
        boot = variances.boot + variances.variance_within(readings)
        wanted = COSTS.layout / (COSTS.boot + readings * COSTS.iteration) * boot / max(variances.layout, TINY)
        boots = max(1, min(math.ceil(wanted**0.5), REACH.boots[1]))
    sd = bound.estimate_variance(variances, readings, boots) ** 0.5
    return _Size(readings, boots, max(REACH.replicates[0], power.find_replicates(effect, sd, alpha, aim=AIM) or 0))


def _seconds(pilot: Pilot, size: _Size) -> float:
    of_layout = COSTS.layout if SHAPES[pilot][0] > 1 else 0.0
    return size.replicates * (of_layout + size.boots * (COSTS.boot + size.readings * COSTS.iteration))


def _power(pilot: Pilot, size: _Size, effect: float, alpha: float) -> float:
    """The true one."""
    sd = bound.estimate_variance(_truth(pilot), size.readings, size.boots) ** 0.5
    return float(power.power(effect, size.replicates, sd, alpha))


def _estimated(pilot: Pilot, random: np.random.Generator) -> Components:
    """What a pilot says of one benchmark."""
    layouts, boots, readings = SHAPES[pilot]
    if layouts == 1:
        middles = random.normal(0, NOISE, (1, boots))
    else:
        middles = random.normal(0, NOISE, layouts)[:, None] + random.normal(0, BOOTS, (layouts, boots))
    shape = (2, layouts, boots, readings)
    noise = random.normal(0, WITHIN / math.sqrt(2), shape) if readings > 1 else np.zeros(shape)
    ours, theirs = noise[0] + middles[:, :, None], noise[1]
    known = components([list(zip(*sides, strict=True)) for sides in zip(ours, theirs, strict=True)])
    assert known is not None
    return known


@cache
def _truth(pilot: Pilot) -> Components:
    layouts, boots, readings = SHAPES[pilot]
    of_medians = () if readings == 1 else tuple(_of_median(count) for count in range(1, REACH.iterations[1] + 1))
    return Components(
        layout=None if layouts == 1 else NOISE**2,
        boot=NOISE**2 if layouts == 1 else BOOTS**2,
        medians=of_medians,
        layouts=layouts,
        boots=layouts * boots,
        iterations=len(of_medians) or 1,
    )


def _of_median(readings: int) -> float:
    """True variance of the difference of two boots' medians, as drawn."""
    drawn = np.random.default_rng(readings).normal(0, WITHIN / math.sqrt(2), (2, 20_000, readings))
    return float(np.var(np.median(drawn, axis=2), axis=1).sum())
