"""The cheapest plan that can see an effect: how many iterations, boots and layouts.

Kalibera & Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013): the optimal number of repetitions of a level
is the one whose variance times cost is least, whatever the effect; only the topmost level grows with precision. That is
planned on an upper bound of the noise: a plan that trusts a short pilot has too little power in almost every second
case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy

from kdyno.base.frozen import Frozen
from kdyno.judge.stats.estimate import CONFIDENCE, POWER, exp
from kdyno.judge.stats.planning import bound, power
from kdyno.judge.stats.planning.levels import Components


@dataclass(frozen=True)
class Costs:
    """Seconds that one more repetition of a level takes, without the levels below it; for all variants together."""

    iteration: float
    boot: float
    layout: float = 0.0


@dataclass(frozen=True)
class Bounds:
    """Smallest and largest useful number of repetitions."""

    iterations: tuple[int, int] = (1, 100)
    boots: tuple[int, int] = (1, 100)
    """Boots of one layout."""
    replicates: tuple[int, int] = (4, 1000)
    """Repetitions of the topmost level: layouts, or blocks if layout isn't sampled."""


class Plan(Frozen):
    """The size of a run."""

    iterations: int
    """Readings in a boot."""
    blocks: int
    """All boots: `layouts` times `boots_per_layout` if layout is sampled."""
    layouts: int
    """0 if layout isn't sampled."""
    boots_per_layout: int
    """0 if layout isn't sampled."""
    effect: float
    """The effect to be seen, a fraction."""
    power: float
    """The power of this plan for the effect, if the noise is at its bound; with less noise it is higher."""
    half_width: float
    """Half-width of the 95 % interval, as a fraction, if the noise is at its bound."""
    noise: float
    """The pilot's estimate of one replicate's standard deviation, as a fraction."""
    noise_bound: float
    """The upper bound of it, with the confidence `bound.CONFIDENCE`: the plan relies on it."""
    seconds: float
    enough: bool
    """Whether the requested power is reached within the limits."""


def plan(
    components: Components,
    costs: Costs,
    effect: float,
    *,
    alpha: float = 0.05,
    aim: float = POWER,
    bounds: Bounds | None = None,
) -> Plan:
    """Return the cheapest plan that sees `effect` (a fraction, not 0) with at least the power `aim`.

    `components` are those of the paired log-ratio, so that the plan's sd is the comparison's; layout is sampled if its
    component is known. The plan holds for noise at its upper bound, and is the cheapest one for that. Costs must be
    positive, but a layout's may be 0. If the limits don't allow enough, the plan is the largest within them, and says
    so.
    """
    limits = bounds or Bounds()
    iterations = _iterations(components, costs, limits)
    boot = components.boot + components.variance_within(iterations)
    boot_cost = costs.boot + iterations * costs.iteration
    boots, cost = 1, boot_cost
    if components.layout is not None:
        of_layouts = bound.upper(components, iterations, math.inf)
        boots = _clamp(_ratio(boot, of_layouts, costs.layout, boot_cost), limits.boots)
        cost = costs.layout + boots * boot_cost
    sd = math.sqrt(bound.upper(components, iterations, boots))
    needed = power.find_replicates(effect, sd, alpha, aim=aim)
    replicates = limits.replicates[1] if needed is None else _clamp(needed, limits.replicates)
    reach = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, replicates - 1)) * sd / math.sqrt(replicates)
    return Plan(
        iterations=iterations,
        blocks=replicates * boots,
        layouts=0 if components.layout is None else replicates,
        boots_per_layout=0 if components.layout is None else boots,
        effect=effect,
        power=float(power.power(effect, replicates, sd, alpha)),
        half_width=exp(reach) - 1,
        noise=exp(math.sqrt(bound.estimate_variance(components, iterations, boots))) - 1,
        noise_bound=exp(sd) - 1,
        seconds=replicates * cost,
        enough=needed is not None and needed <= limits.replicates[1],
    )


def _iterations(components: Components, costs: Costs, limits: Bounds) -> int:
    low, high = limits.iterations
    of_boot = components.model_copy(update={"layout": None})
    return min(
        range(low, high + 1),
        key=lambda count: bound.upper(of_boot, count, 1) * (costs.boot + count * costs.iteration),
    )


def _ratio(variance: float, above: float, cost_above: float, cost: float) -> float:
    """√(cost of the level above / cost · variance / variance of the level above); no limit where that is 0."""
    if variance == 0 or cost_above == 0:
        return 0.0
    return math.sqrt(cost_above / cost * variance / above) if above > 0 else math.inf


def _clamp(wanted: float, limits: tuple[int, int]) -> int:
    low, high = limits
    return high if wanted >= high else max(low, math.ceil(wanted))
