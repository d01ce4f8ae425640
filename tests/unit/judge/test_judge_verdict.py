from __future__ import annotations

import pytest

from kdyno.base.measurement import Direction, Quantity
from kdyno.base.text import format_signed, percent
from kdyno.judge.stats.estimate import Estimate
from kdyno.judge.stats.verdict import Verdict, decide, scoped_verdict, sentence


def estimated(ratio: float, low: float, high: float, detectable: float = 0.006) -> Estimate:
    return Estimate(
        ratio=ratio,
        low=low,
        high=high,
        confidence=0.95,
        detectable=detectable,
        method="paired",
        blocks=12,
        units=12,
        df=11,
        p_equivalence=0.5,
        p=0.01,
    )


@pytest.mark.parametrize(
    ("estimate", "p_adjusted", "direction", "verdict"),
    [
        (estimated(0.97, 0.96, 0.98), 0.001, "lower", "faster"),
        (estimated(0.97, 0.96, 0.98), 0.001, "higher", "slower"),
        (estimated(1.03, 1.02, 1.04), 0.001, "lower", "slower"),
        (estimated(1.03, 1.02, 1.04), 0.2, "lower", "undecided"),
        (estimated(1.005, 1.001, 1.009), 0.001, "lower", "equivalent"),
        (estimated(1.0, 0.98, 1.02), 1.0, "lower", "undecided"),
    ],
)
def test_equal_is_looked_for_before_different(
    estimate: Estimate, p_adjusted: float, direction: Direction, verdict: Verdict
) -> None:
    assert decide(estimate, p_adjusted, direction, "speed", margin=0.01, alpha=0.05) == verdict


@pytest.mark.parametrize(
    ("ratio", "direction", "quantity", "verdict"),
    [
        (0.9, "lower", "count", "fewer"),
        (1.1, "lower", "count", "more"),
        (1.1, "higher", "count", "better"),
        (0.9, "higher", "count", "worse"),
        (0.9, None, "speed", "lower"),
        (1.1, None, "count", "higher"),
    ],
)
def test_counts_are_fewer_or_more_work_per_count_is_better_or_worse_and_what_has_no_direction_is_higher_or_lower(
    ratio: float, direction: Direction | None, quantity: Quantity, verdict: Verdict
) -> None:
    assert decide(estimated(ratio, ratio - 0.01, ratio + 0.01), 0.001, direction, quantity, 0.01, 0.05) == verdict


def test_a_verdict_says_what_it_is_about() -> None:
    assert scoped_verdict("faster", "kernels") == "faster"
    assert scoped_verdict("fewer", "images") == "fewer (these images)"
    assert scoped_verdict("equivalent", "boots") == "equivalent (these boots)"
    assert scoped_verdict("undecided", "boots") == "undecided"
    lower = estimated(0.969, 0.962, 0.976)
    assert "3.8: faster (these images); this" in sentence("pipe", lower, "faster", "images", 0.01, "", "")


def test_every_verdict_has_its_sentence() -> None:
    lower = estimated(0.969, 0.962, 0.976)
    assert sentence("pipe latency", lower, "faster", "kernels", 0.01, "", "") == (
        "pipe latency 3.1 % lower, 95 % interval 2.4 to 3.8: faster; this run could have seen 0.60 %"
    )
    assert sentence("pipe bandwidth", estimated(1.031, 1.024, 1.038), "faster", "kernels", 0.01, "", "").startswith(
        "pipe bandwidth 3.1 % higher, 95 % interval 2.4 to 3.8"
    )
    assert sentence("fork", estimated(1.001, 0.998, 1.004), "equivalent", "kernels", 0.01, "", "") == (
        "fork equivalent within 1 %: +0.10 %, 95 % interval -0.20 to +0.40; this run could have seen 0.60 %"
    )
    assert sentence("fork", estimated(1.01, 0.99, 1.03), "undecided", "kernels", 0.01, "", "").startswith(
        "fork undecided: +1.0 %"
    )


def test_percentages_keep_two_digits_below_one() -> None:
    shown = [percent(x) for x in (0, 0.031, 0.5, 0.0062, 0.00062, 0.0000004, 12.5, 100.0)]
    assert shown == ["0", "3.1", "50.0", "0.62", "0.062", "0.000040", "1.2e+03", "1.0e+04"]
    assert [format_signed(x) for x in (-0.031, 0.0, 0.031)] == ["-3.1", "0", "+3.1"]
