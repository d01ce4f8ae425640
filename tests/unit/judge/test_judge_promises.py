"""What the judge promises beside a verdict: what it could have seen, what it can't exclude, what it is about."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import ArrayLike

from kdyno.judge.stats.compare import Comparison, Judgement, judge
from kdyno.judge.stats.detectable import detectable
from kdyno.judge.stats.estimate import EstimateLimits
from kdyno.judge.stats.observations import Observations, ReplicateSample
from kdyno.judge.stats.verdict import DIFFERENT
from tests.unit.judge_data import apart, in_blocks

BLOCKS = 12
SPREAD = 0.01


def judged(*benchmarks: Observations, margin: float = 0.01) -> Judgement:
    return judge(benchmarks, ["base", "v"], "base", margin=margin, alpha=0.05)


def only(benchmark: Observations) -> Comparison:
    return judged(benchmark).comparisons[0]


def of_boots(groups: Mapping[str, ArrayLike], name: str) -> Observations:
    """Values that are of boots, the same in all benchmarks."""
    samples = {}
    for place, (variant, values) in enumerate(groups.items()):
        array = np.asarray(values, dtype=float)
        samples[variant] = ReplicateSample(array, boots=100 * place + np.arange(len(array)))
    return Observations(name, "ns", "lower", name, samples)


def boots_of_their_own_speed(random: np.random.Generator, benchmarks: int = 12, boots: int = 5) -> list[Observations]:
    """An A/A: every boot is slower or faster as a whole, sd 2 %, and every value of it a little (0.5 %)."""
    speeds = {variant: random.normal(0, 0.02, boots) for variant in ("base", "v")}
    return [
        of_boots(
            {variant: 100 * np.exp(speed + random.normal(0, 0.005, boots)) for variant, speed in speeds.items()},
            f"b{number}",
        )
        for number in range(benchmarks)
    ]


def test_a_geometric_mean_of_boots_that_differ_as_a_whole_is_rarely_wrong() -> None:
    random = np.random.default_rng(1)
    means = [judged(*boots_of_their_own_speed(random)).geometric_means[0] for _ in range(200)]
    assert sum(mean.verdict in DIFFERENT for mean in means) <= 16  # 5 % and what chance adds; it was more than half
    covered = [
        mean.estimate.low <= 1 <= mean.estimate.high
        for mean in means
        if mean.estimate and mean.estimate.low and mean.estimate.high
    ]
    assert len(covered) == 200
    assert sum(covered) >= 184


def test_a_benchmark_that_some_boot_lacks_is_left_out_of_the_mean_of_boots() -> None:
    random = np.random.default_rng(2)
    benchmarks = boots_of_their_own_speed(random, benchmarks=3)
    short = {
        variant: ReplicateSample(sample.values[1:], boots=sample.boots[1:])
        for variant, sample in benchmarks[0].groups.items()
        if isinstance(sample, ReplicateSample) and sample.boots is not None
    }
    [mean] = judged(Observations("b0", "ns", "lower", "b0", short), *benchmarks[1:]).geometric_means
    assert (mean.benchmarks, mean.left_out) == (2, ("b0",))
    assert mean.estimate
    assert mean.estimate.units == 5


def test_counts_are_no_part_of_a_mean_of_speeds() -> None:
    random = np.random.default_rng(3)
    time, count = boots_of_their_own_speed(random, benchmarks=2)
    counted = Observations("instructions", "instr", "lower", "instructions", count.groups, quantity="count")
    unknown = Observations("score", "", None, "score", count.groups)
    [mean] = judged(time, counted, unknown).geometric_means
    assert (mean.benchmarks, mean.left_out, mean.unit) == (1, ("instructions", "score"), "speed")
    [mean] = judged(counted, unknown).geometric_means
    assert (mean.quantity, mean.unit) == ("count", "work/instr")
    [mean] = judged(unknown).geometric_means
    assert mean.estimate is None
    assert mean.reason == "for no benchmark is it known whether lower or higher is better"


def test_what_a_comparison_says_it_could_have_seen_is_what_the_rule_sees() -> None:
    random = np.random.default_rng(5)
    benchmarks = [
        in_blocks({"base": np.ones(BLOCKS), "v": np.exp(random.normal(0, SPREAD, BLOCKS))}, f"b{place}")
        for place in range(34)
    ]
    for comparison in judged(*benchmarks).comparisons:
        assert comparison.estimate
        assert comparison.estimate.error
        assert comparison.estimate.detectable == detectable(
            comparison.estimate.error, BLOCKS - 1, EstimateLimits(0.01), family=34
        )


def test_an_effect_inside_the_margin_is_never_said_to_be_seen() -> None:
    assert detectable(1e-6, 11, EstimateLimits(margin=0.01)) == pytest.approx(0.01, rel=1e-3)
    assert detectable(1e-6, 11, EstimateLimits(margin=0.0)) < 1e-5


def test_what_agrees_exactly_takes_no_place_in_holms_family() -> None:
    random = np.random.default_rng(6)
    noisy = in_blocks({"base": np.ones(BLOCKS), "v": np.exp(random.normal(0.03, 0.02, BLOCKS))}, "noisy")
    equal = [
        in_blocks({"base": np.full(BLOCKS, 7.0), "v": np.full(BLOCKS, 7.0)}, f"equal{place}") for place in range(40)
    ]
    alone, among = only(noisy), judged(noisy, *equal).comparisons[0]
    assert alone.verdict == "slower"
    assert (among.verdict, among.p_adjusted) == ("slower", alone.p_adjusted)


def test_seeds_that_agree_say_how_many_boots_may_do_otherwise() -> None:
    same = only(in_blocks({"base": np.full(BLOCKS, 100.0), "v": np.full(BLOCKS, 90.0)}))
    assert same.caution == ("identical in all 12 blocks; something that happens in up to 22 % of boots is not excluded")
    assert same.estimate
    assert (same.estimate.low, same.estimate.p, same.estimate.detectable) == (None, None, None)
    assert "could have seen" not in same.sentence


def test_the_fewer_agree_the_more_may_have_been_missed() -> None:
    few = only(in_blocks({"base": [100.0] * 3, "v": [90.0] * 3}))
    assert few.sentence == (
        "test b 10.0 % lower: faster, identical in all 3 blocks; something that happens in up to 63 % of boots is not "
        "excluded"
    )


def test_values_that_agree_because_they_were_rounded_differ_by_up_to_the_rounding() -> None:
    def printed(base: float, v: float) -> Observations:
        of = apart({"base": [base] * 12, "v": [v] * 12})
        return Observations(of.benchmark, "us", "lower", "syscall", of.groups, step=0.01)

    alike = only(printed(0.31, 0.31))
    assert alike.verdict == "undecided"
    assert alike.estimate
    assert (alike.estimate.low, alike.estimate.high) == pytest.approx((math.exp(-0.01 / 0.31), math.exp(0.01 / 0.31)))
    assert "(-3.2 to +3.3 by rounding), identical in all 12 values" in alike.sentence
    assert only(printed(31.0, 31.0)).verdict == "equivalent"
    one_step = only(printed(0.31, 0.32))
    assert one_step.verdict == "undecided"  # 0.3149 and 0.3151 are printed like that
    assert only(printed(0.31, 0.35)).verdict == "slower"


def test_a_single_value_off_by_the_last_digit_is_no_spread_to_rely_on() -> None:
    values = {"base": [0.31] * 11 + [0.32], "v": [0.32] * 11 + [0.31]}
    exact, printed = (
        only(Observations("b", "us", "lower", "b", apart(values).groups, step=step)) for step in (0.0, 0.01)
    )
    assert exact.verdict == "slower"
    assert printed.verdict == "undecided"


def test_boots_too_few_to_judge_kernels_by_leave_the_verdict_that_their_readings_carry() -> None:
    random = np.random.default_rng(7)
    readings = {"base": random.normal(100, 1, 30), "v": random.normal(110, 1, 30)}
    without = apart(readings)
    one_boot = Observations(
        "b",
        "ns",
        "lower",
        "b",
        apart({name: [np.median(values)] for name, values in readings.items()}).groups,
        readings={name: sample for name, sample in without.groups.items() if isinstance(sample, ReplicateSample)},
    )
    judgement = judge([one_boot], ["base", "v"], "base", margin=0.01, alpha=0.05)
    marked, mean = judgement.comparisons[0], judgement.geometric_means[0]
    assert (mean.verdict, mean.scope) == ("slower", "boots")
    assert (marked.verdict, marked.scope) == ("slower", "boots")
    assert ": slower (these boots);" in marked.sentence
    bare = judge([without], ["base", "v"], "base", margin=0.01, alpha=0.05, scope="boots").comparisons[0]
    assert (bare.verdict, bare.scope) == (marked.verdict, marked.scope)
