"""The rule that turns an estimate into a verdict, and the sentence that says it."""

from __future__ import annotations

import math
from typing import Literal

from kdyno.judge.estimate import Estimate, Method
from kdyno.measurement import Direction
from kdyno.text import confidence, limit, percent, signed

Verdict = Literal["faster", "slower", "equivalent", "undecided"]

NO_SPREAD: dict[Method, str] = {
    "paired": "one block: no spread known",
    "layouts": "one layout: no spread known",
    "welch": "one value: no spread known",
}
"""Why an estimate has no interval."""


def decide(estimate: Estimate, p_adjusted: float | None, direction: Direction, margin: float, alpha: float) -> Verdict:
    """Judge an estimate: equal is looked for first, so that a real but negligible difference is called negligible."""
    if estimate.low is None or estimate.high is None or p_adjusted is None:
        return "undecided"
    edge = math.log1p(margin)
    if -edge <= math.log(estimate.low) and math.log(estimate.high) <= edge:
        return "equivalent"
    if p_adjusted < alpha:
        return "faster" if (estimate.ratio < 1) == (direction == "lower") else "slower"
    return "undecided"


def sentence(what: str, estimate: Estimate, verdict: Verdict, margin: float) -> str:
    """Say a verdict in one sentence: effect, interval and what could have been seen."""
    effect = estimate.ratio - 1
    if estimate.low is None or estimate.high is None or estimate.detectable is None:
        return f"{what} undecided: {signed(effect)} %; {NO_SPREAD[estimate.method]}"
    low, high = estimate.low - 1, estimate.high - 1
    interval = f"{confidence(estimate.confidence)} interval"
    seen = f"this run could have seen {percent(estimate.detectable)} %"
    if verdict in ("faster", "slower"):
        word = "lower" if effect < 0 else "higher"
        if low * high < 0:  # where the correction is milder than the interval
            return f"{what} {percent(effect)} % {word}, {interval} {signed(low)} to {signed(high)} ({verdict}); {seen}"
        near, far = sorted((abs(low), abs(high)))
        return f"{what} {percent(effect)} % {word}, {interval} {percent(near)} to {percent(far)} ({verdict}); {seen}"
    outcome = f"equivalent within {limit(margin)} %" if verdict == "equivalent" else "undecided"
    return f"{what} {outcome}: {signed(effect)} %, {interval} {signed(low)} to {signed(high)}; {seen}"
