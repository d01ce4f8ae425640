"""Comparing every variant with the baseline, benchmark by benchmark and over the whole workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kdyno.base.frozen import Frozen
from kdyno.base.measurement import Correction, Direction, Quantity
from kdyno.base.text import percent
from kdyno.judge.stats import absence, skewness
from kdyno.judge.stats.contrast import Contrast, Paired, PublishedSummaries, contrast_of, estimate_contrast, middle
from kdyno.judge.stats.detectable import detectable
from kdyno.judge.stats.estimate import CONFIDENCE, Estimate, EstimateLimits
from kdyno.judge.stats.logratio import MOST_VARIATION
from kdyno.judge.stats.multiplicity import adjust
from kdyno.judge.stats.observations import Observations, require_usable
from kdyno.judge.stats.overall import NOT_TOGETHER, Overall, overall
from kdyno.judge.stats.verdict import NOUNS, Nouns, Scope, Verdict, caution, decide, reason, sentence

FEW = 5
"""Fewer replicates than this hardly know their own spread."""

Why = Callable[[str, Sequence[str]], str]
"""Returns why a benchmark of (baseline, variant) has no comparison."""


class Judged(Frozen):
    """A variant against the baseline; without an estimate and a verdict if nothing could be compared."""

    variant: str
    estimate: Estimate | None = None
    p_adjusted: float | None = None
    """The p-value, adjusted for all comparisons of its kind in the run."""
    quantity: Quantity = "speed"
    verdict: Verdict | None = None
    scope: Scope
    """The scope of the verdict: kernels, these images, these rounds on one running kernel, or these boots."""
    reason: str = ""
    """The reason for a missing estimate, or for a verdict that is undecided whatever the estimate is."""
    caution: str = ""
    """A caution about the interval: effects that replicates which agree exactly may have missed, or their skewness."""
    sentence: str = ""


class Comparison(Judged):
    """One benchmark: the ratio is the variant's value over the baseline's."""

    benchmark: str
    direction: Direction | None
    baseline_value: float | None = None
    """Geometric means over the compared values, in the benchmark's unit (for a summary its mean): their ratio is the
    estimate's, unless layouts have different numbers of blocks.
    """
    variant_value: float | None = None
    dropped: int = 0
    """Blocks left out because one of the two has no value in them."""


class GeometricMean(Judged):
    """The whole workload: the ratio is of speeds, so that above 1 is better whatever the benchmarks' directions."""

    unit: str = "speed"
    """The quantity of the effect: `speed`, or `work/instr` where instructions are counted, `work/count` elsewhere."""
    benchmarks: int = 0
    left_out: tuple[str, ...] = ()
    """Benchmarks that are left out: they lack a value in some block or boot, or a direction, or could not be compared;
    and counts where there are speeds.
    """


AnyJudged = TypeVar("AnyJudged", bound=Judged)


class Judgement(Frozen):
    """All verdicts of a run."""

    comparisons: tuple[Comparison, ...]
    """By variant in the order given, then by benchmark."""
    geometric_means: tuple[GeometricMean, ...]

    @property
    def family(self) -> int:
        """How many comparisons share alpha; 1 if none does."""
        return max(1, sum(comparison.p_adjusted is not None for comparison in self.comparisons))


@dataclass(frozen=True)
class _Rule:
    """The common settings of all verdicts of a run."""

    limits: EstimateLimits
    correction: Correction
    scope: Scope
    nouns: Nouns
    why: Why | None


def judge(
    observations: Sequence[Observations],
    variants: Sequence[str],
    baseline: str,
    *,
    margin: float,
    alpha: float,
    confidence: float = CONFIDENCE,
    correction: Correction = "holm",
    scope: Scope = "kernels",
    nouns: Nouns = NOUNS,
    why: Why | None = None,
) -> Judgement:
    """Judge all variants against the baseline. `margin`, `alpha` and `confidence` are fractions.

    A run that may stop early passes the nominal level of its look as `alpha` and 1 - level as `confidence`. `scope` is
    the scope of the data, `nouns` are the names of the replicates. `why` explains why a benchmark has no comparison;
    without it the explanation comes from the values alone. Raise UnusableSample, UnusableSummary and BlockTwice.
    """
    for observed in observations:
        require_usable(observed)
    rule = _Rule(EstimateLimits(margin, alpha, confidence), correction, scope, nouns, why)
    judgement = _judge_all(observations, variants, baseline, rule)
    by_reading = [_reading_observations(observed) for observed in observations if observed.readings is not None]
    if not by_reading:
        return judgement
    return _filled_in(judgement, _judge_all(by_reading, variants, baseline, replace(rule, scope="boots")))


def _judge_all(observations: Sequence[Observations], variants: Sequence[str], baseline: str, rule: _Rule) -> Judgement:
    comparisons: list[Comparison] = []
    means: list[GeometricMean] = []
    for variant in variants:
        if variant == baseline:
            continue
        contrasts = [contrast_of(observed, variant, baseline) for observed in observations]
        comparisons += [
            _compare_benchmark(observed, contrast, (baseline, variant), rule)
            for observed, contrast in zip(observations, contrasts, strict=True)
        ]
        means.append(_geometric_mean(variant, observations, contrasts, rule))
    texts = {observed.benchmark: observed.description or observed.benchmark for observed in observations}
    ps = _adjust_p_values(comparisons, rule.correction)
    mean_ps = _adjust_p_values(means, rule.correction)
    return Judgement(
        comparisons=tuple(
            comparison.model_copy(
                update=_decision_fields(
                    comparison, p, comparison.direction, texts[comparison.benchmark], _family(ps), rule
                )
            )
            for comparison, p in zip(comparisons, ps, strict=True)
        ),
        geometric_means=tuple(
            mean.model_copy(
                update=_decision_fields(mean, p, "higher", f"{mean.unit} over all benchmarks", _family(mean_ps), rule)
            )
            for mean, p in zip(means, mean_ps, strict=True)
        ),
    )


def _reading_observations(observed: Observations) -> Observations:
    """Return the observations of single readings, as if nothing were known of boots."""
    return replace(observed, groups=observed.readings or {}, readings=None)


def _filled_in(judgement: Judgement, by_reading: Judgement) -> Judgement:
    """Use the verdict on these boots if the boots themselves are too few for one on kernels.

    A column that distinguishes boots must not cost a verdict that would be given without it.
    """
    narrow = {(comparison.benchmark, comparison.variant): comparison for comparison in by_reading.comparisons}
    narrow_means = {mean.variant: mean for mean in by_reading.geometric_means}
    return Judgement(
        comparisons=tuple(
            _choose_judgement(comparison, narrow.get((comparison.benchmark, comparison.variant)))
            for comparison in judgement.comparisons
        ),
        geometric_means=tuple(
            _choose_judgement(mean, narrow_means.get(mean.variant)) for mean in judgement.geometric_means
        ),
    )


def _choose_judgement(wide: AnyJudged, narrow: AnyJudged | None) -> AnyJudged:
    too_few = wide.estimate is None or wide.estimate.units < FEW
    undecided = wide.verdict in (None, "undecided")
    decided = narrow is not None and narrow.verdict not in (None, "undecided")
    return narrow if narrow is not None and decided and too_few and undecided else wide


def _compare_benchmark(
    observed: Observations, contrast: Contrast | None, names: tuple[str, str], rule: _Rule
) -> Comparison:
    blank = Comparison(
        variant=names[1],
        benchmark=observed.benchmark,
        direction=observed.direction,
        quantity=observed.quantity,
        scope=rule.scope,
    )
    if contrast is None:
        why = rule.why(observed.benchmark, names) if rule.why else absence.absence_reason(observed, names)
        return blank.model_copy(update={"reason": why, "dropped": _count_unshared_blocks(observed, names)})
    baseline_value, variant_value = middle(contrast)
    return blank.model_copy(
        update={
            "estimate": estimate_contrast(contrast, rule.limits),
            "baseline_value": baseline_value,
            "variant_value": variant_value,
            "dropped": contrast.dropped if isinstance(contrast, Paired) else 0,
            "reason": _distrust_reason(contrast),
            "caution": skewness.sentence(skew) if (skew := skewness.contrast_skew(contrast)) else "",
        }
    )


def _count_unshared_blocks(observed: Observations, names: tuple[str, str]) -> int:
    """Return the number of blocks that only one of two variants has."""
    samples = [observed.sample(name) for name in names]
    return sum(len(sample.blocks) for sample in samples if sample is not None and sample.blocks is not None)


def _distrust_reason(contrast: Contrast) -> str:
    """Return why a contrast can't be judged whatever its numbers are; empty if it can."""
    if not isinstance(contrast, PublishedSummaries):
        return ""
    widest = max(summary.sd / summary.mean for summary in (contrast.variant, contrast.baseline))
    if widest <= MOST_VARIATION:
        return ""
    return f"the standard deviation is {percent(widest)} % of the mean: a ratio needs the single values"


def _geometric_mean(
    variant: str, observations: Sequence[Observations], contrasts: Sequence[Contrast | None], rule: _Rule
) -> GeometricMean:
    """Return the mean over benchmarks of the logarithm of the speed ratio, judged like any other comparison."""
    mean = overall(
        [
            (observed, contrast)
            for observed, contrast in zip(observations, contrasts, strict=True)
            if contrast is not None and not _distrust_reason(contrast)
        ],
        rule.limits,
    )
    return GeometricMean(
        variant=variant,
        benchmarks=len(mean.benchmarks),
        left_out=tuple(observed.benchmark for observed in observations if observed.benchmark not in mean.benchmarks),
        quantity=mean.quantity,
        scope=rule.scope,
        unit=_overall_unit(observations, mean),
        estimate=mean.estimate,
        reason=mean.reason,
    )


def _overall_unit(observations: Sequence[Observations], mean: Overall) -> str:
    if mean.quantity == "speed":
        return "speed"
    units = {observed.unit for observed in observations if observed.benchmark in mean.benchmarks}
    return "work/instr" if units <= {"instr", "B/instr"} else "work/count"


def _adjust_p_values(judged: Sequence[Judged], correction: Correction) -> list[float | None]:
    """Adjust all p-values as one family. Values that agree exactly have no p, and don't count in the family."""
    return adjust([result.estimate.p if result.estimate else None for result in judged], correction)


def _family(ps: Sequence[float | None]) -> int:
    """Return how many comparisons share alpha."""
    return sum(p is not None for p in ps)


def _decision_fields(
    judged: Judged, p_adjusted: float | None, direction: Direction | None, what: str, family: int, rule: _Rule
) -> dict[str, Any]:
    """Return the fields that the verdict adds to an estimate; none without a verdict."""
    estimate, limits = judged.estimate, rule.limits
    if estimate is None:
        return {}
    if estimate.error and estimate.df:
        could = detectable(estimate.error, estimate.df, limits, family=family, rounding=estimate.rounding)
        estimate = estimate.model_copy(update={"detectable": could})
    why = judged.reason or reason(estimate)
    warned = caution(estimate, rule.nouns) or judged.caution
    verdict: Verdict | None = None if judged.reason == NOT_TOGETHER else "undecided"
    if not why:
        verdict = decide(estimate, p_adjusted, direction, judged.quantity, limits.margin, limits.alpha)
    return {
        "estimate": estimate,
        "p_adjusted": p_adjusted,
        "verdict": verdict,
        "reason": why,
        "caution": warned,
        "sentence": sentence(what, estimate, verdict, judged.scope, limits.margin, why, warned),
    }
