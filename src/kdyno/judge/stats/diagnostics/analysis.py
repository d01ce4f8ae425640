"""All data behind the verdicts on one benchmark: the tables and figures of the report."""

from __future__ import annotations

import math

from kdyno.judge.stats.contrast import Paired, contrast_of, log_ratio
from kdyno.judge.stats.diagnostics import anova
from kdyno.judge.stats.diagnostics.assumptions import assumptions
from kdyno.judge.stats.diagnostics.blocks import average_layouts, block_values, complete
from kdyno.judge.stats.diagnostics.groups import groups_in, groups_of, scale_of, summaries_of
from kdyno.judge.stats.diagnostics.mixed import fit_mixed, has_holes
from kdyno.judge.stats.diagnostics.pairwise import dunnett, pair_tables
from kdyno.judge.stats.diagnostics.tables import Analysis
from kdyno.judge.stats.estimate import EstimateLimits
from kdyno.judge.stats.logratio import LogRatio
from kdyno.judge.stats.observations import Observations, require_usable
from kdyno.judge.stats.planning import power
from kdyno.judge.stats.planning.power import PowerCurve


def analyse(observations: Observations, baseline: str, alpha: float, margin: float, family: int = 1) -> Analysis:
    """Make all tables of one benchmark. `alpha` gives the coverage of the tables' intervals, `margin` the effect that
    replicates are counted for; both are fractions. `family` is the number of comparisons of the run: only the
    detectable effects depend on it.

    Values of one benchmark only: no table is adjusted for the number of benchmarks. Raise UnusableSample,
    UnusableSummary and BlockTwice; degenerate data (single values, no noise) only leave tables out.
    """
    require_usable(observations)
    replicates = average_layouts(observations)
    groups, scale = groups_of(replicates), scale_of(replicates)
    one_way, welch = anova.one_way(groups), anova.welch(groups)
    blocked = noise = None
    if (table := block_values(replicates)) is not None:
        blocked = anova.blocked_anova(table)
        full = complete(table)
        if noise := anova.noise_of(anova.blocked_anova(full)):
            groups = groups_in(full)
    return Analysis(
        benchmark=observations.benchmark,
        scale=scale,
        groups=summaries_of(observations),
        one_way=one_way,
        welch=welch,
        blocked=blocked,
        assumptions=assumptions(observations),
        pairs=pair_tables(groups, scale, alpha, noise),
        dunnett=dunnett(groups, baseline, scale, alpha, noise),
        mixed=fit_mixed(observations, baseline, alpha) if has_holes(observations) else None,
        power=tuple(
            curve
            for variant in observations.groups
            if variant != baseline
            and (curve := _power(observations, variant, baseline, EstimateLimits(margin, alpha), family))
        ),
        reason="" if one_way.rows else one_way.reason,
    )


def _power(
    observed: Observations, variant: str, baseline: str, limits: EstimateLimits, family: int
) -> PowerCurve | None:
    contrast = contrast_of(observed, variant, baseline)
    if contrast is None:
        return None
    ratio = log_ratio(contrast)
    paired = isinstance(contrast, Paired)
    if not ratio.error or not math.isfinite(ratio.error):
        return None
    return power.curve(variant, ratio.units, _sd(ratio, paired), limits, family=family, paired=paired)


def _sd(ratio: LogRatio, paired: bool) -> float:
    """Return the standard deviation of one replicate: of the differences in a paired design, otherwise of both groups
    if they were alike.
    """
    assert ratio.error is not None
    return ratio.error * math.sqrt(ratio.units / (1 if paired else 2))
