"""The rule that turns an estimate into a verdict, and the verdict's sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from kdyno.base.measurement import Direction, Quantity
from kdyno.base.text import confidence, format_signed, limit, percent
from kdyno.judge.stats.estimate import Estimate, Method

Verdict = Literal["faster", "slower", "fewer", "more", "better", "worse", "higher", "lower", "equivalent", "undecided"]
BETTER: frozenset[Verdict] = frozenset({"faster", "fewer", "better"})
WORSE: frozenset[Verdict] = frozenset({"slower", "more", "worse"})
DIFFERENT: frozenset[Verdict] = BETTER | WORSE | {"higher", "lower"}

Scope = Literal["kernels", "images", "rounds", "boots"]
"""The scope of a verdict. images: each variant is one link order, and another may behave differently. boots: nothing
shows that the replicates are of several boots, and another boot may behave differently.
"""

Nouns = Mapping[Method, str]
"""The names of the replicates."""
NOUNS: Nouns = {"paired": "blocks", "layouts": "layouts", "welch": "values"}

NO_SPREAD: dict[Method, str] = {
    "paired": "one block: no spread known",
    "layouts": "one layout: no spread known",
    "welch": "one value: no spread known",
}
"""The reason, by method, for an estimate without an interval."""


def decide(
    estimate: Estimate,
    p_adjusted: float | None,
    direction: Direction | None,
    quantity: Quantity,
    margin: float,
    alpha: float,
) -> Verdict:
    """Judge an estimate: equality is tested first, so that a real but negligible difference is called negligible."""
    edge = math.log1p(margin)
    if estimate.unseen is not None:
        low, high = (estimate.low or estimate.ratio), (estimate.high or estimate.ratio)
        different = not low <= 1 <= high
    elif estimate.low is None or estimate.high is None or p_adjusted is None:
        return "undecided"
    else:
        low, high, different = estimate.low, estimate.high, p_adjusted < alpha
    if -edge <= math.log(low) and math.log(high) <= edge:
        return "equivalent"
    return direction_verdict(estimate.ratio, direction, quantity) if different else "undecided"


def direction_verdict(ratio: float, direction: Direction | None, quantity: Quantity) -> Verdict:
    """Return the verdict on a ratio that is not 1."""
    worse, better = direction_words(direction, quantity)
    return better if (ratio < 1) == (direction == "lower") else worse


def direction_words(direction: Direction | None, quantity: Quantity) -> tuple[Verdict, Verdict]:
    """Return the words for worse and better. For counts `fewer` is better; but a count in work, bytes for each
    instruction, isn't called fewer where it grows. If the better direction is unknown, a value is lower or higher.
    """
    if direction is None:
        return "lower", "higher"
    if quantity == "speed":
        return "slower", "faster"
    return ("more", "fewer") if direction == "lower" else ("worse", "better")


def scoped_verdict(verdict: Verdict, scope: Scope) -> str:
    """Return `faster (these images)`: a verdict never promises more than was sampled."""
    return verdict if verdict == "undecided" else f"{verdict}{mark_of(scope)}"


def mark_of(scope: Scope) -> str:
    """Return ` (these images)`; empty for kernels, which a reader expects."""
    return "" if scope == "kernels" else f" (these {scope})"


def reason(estimate: Estimate) -> str:
    """Return why there can be no verdict whatever the effect is; empty if there can."""
    return NO_SPREAD[estimate.method] if estimate.low is None and estimate.unseen is None else ""


def sentence(
    what: str, estimate: Estimate, verdict: Verdict | None, scope: Scope, margin: float, why: str, caution: str
) -> str:
    """Return a verdict in one sentence: effect, interval and the detectable effect; `why` is why there is none."""
    effect = estimate.ratio - 1
    outcome = f"equivalent within {limit(margin)} %" if verdict == "equivalent" else "undecided"
    if verdict == "equivalent":
        outcome += mark_of(scope)
    change = f"{percent(effect)} % {'lower' if effect < 0 else 'higher'}"
    if estimate.unseen is not None:
        rounded = _rounding_phrase(estimate)
        if verdict in DIFFERENT:
            return f"{what} {change}{rounded}: {scoped_verdict(verdict, scope)}, {caution}"
        return f"{what} {outcome}: {format_signed(effect)} %{rounded}, {caution}"
    if estimate.low is None or estimate.high is None:
        return f"{what} {verdict or 'not judged'}: {format_signed(effect)} %; {why}"
    low, high = estimate.low - 1, estimate.high - 1
    interval = f"{confidence(estimate.confidence)} interval"
    sensitivity = "" if estimate.detectable is None else f"; this run could have seen {percent(estimate.detectable)} %"
    if verdict not in DIFFERENT:
        return (
            f"{what} {outcome}: {format_signed(effect)} %, {interval} {format_signed(low)} to "
            f"{format_signed(high)}{sensitivity}"
        )
    ends = f"{format_signed(low)} to {format_signed(high)}"
    if low * high >= 0:  # the interval may hold 0 if the correction is milder than the interval
        near, far = sorted((abs(low), abs(high)))
        ends = f"{percent(near)} to {percent(far)}"
    return f"{what} {change}, {interval} {ends}: {scoped_verdict(verdict, scope)}{sensitivity}"


def caution(estimate: Estimate, nouns: Nouns) -> str:
    """Return the events that replicates which agree exactly may have missed; empty if they differ."""
    if estimate.unseen is None:
        return ""
    things = "measurements" if estimate.method == "welch" else "boots"
    share = f"{100 * estimate.unseen:.0f} %"
    alike = f"identical in all {estimate.units} {nouns[estimate.method]}"
    return f"{alike}; something that happens in up to {share} of {things} is not excluded"


def _rounding_phrase(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f" ({format_signed(estimate.low - 1)} to {format_signed(estimate.high - 1)} by rounding)"
