"""The judge as a whole: planted truths in simulated runs, and the cases that have no verdict."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from kdyno.base.measurement import Benchmark, Direction, Sample
from kdyno.judge.stats.compare import Comparison, Judgement, judge
from kdyno.judge.verdicts import absence
from kdyno.judge.verdicts.values import observations
from kdyno.store.records import BootRecord
from tests.unit import specimen


def benchmarks(count: int, direction: Direction = "lower") -> list[Benchmark]:
    return [
        Benchmark(name=f"b{i}", test="b", unit="ns", direction=direction, description=f"test {i}") for i in range(count)
    ]


def boot(variant: str, block: int, values: dict[str, float], **other: object) -> BootRecord:
    """A boot whose benchmarks read these values, to nine digits."""
    return BootRecord.model_validate(
        {
            "key": f"{variant}, block {block}",
            "variant": variant,
            "block": block,
            "position": 0,
            "seed": block,
            "status": "ok",
            "started": specimen.NOON,
            "seconds": 1,
            "samples": tuple(
                Sample(benchmark=name, iteration=0, elapsed=round(value * 10**9), work=10**9)
                for name, value in values.items()
            ),
            **other,
        }
    )


def simulated(seed: int, *, effects: dict[str, float], blocks: int = 6, count: int = 10) -> list[BootRecord]:
    """Boots with normal noise of 1 % per boot and 3 % per block; effects are ratios of values by variant."""
    random = np.random.default_rng(seed)
    boots = []
    for block in range(blocks):
        weather = random.normal(0, 0.03, count)
        for variant, ratio in effects.items():
            values = 1000 * ratio * np.exp(weather + random.normal(0, 0.01, count))
            boots.append(boot(variant, block, {f"b{i}": float(value) for i, value in enumerate(values)}))
    return boots


def judged(boots: list[BootRecord], count: int = 1, direction: Direction = "lower", margin: float = 0.01) -> Judgement:
    variants = list(dict.fromkeys(boot.variant for boot in boots))
    observed = observations(boots, benchmarks(count, direction), sorted({boot.variant for boot in boots}))
    return judge(observed, variants, "base", margin=margin, alpha=0.05, why=partial(absence.reason, boots, {}))


def only(judgement: Judgement) -> Comparison:
    [comparison] = judgement.comparisons
    return comparison


def test_a_kernel_against_itself_is_called_different_in_at_most_one_run_of_twenty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # statsmodels collects garbage at every call, which is most of the time that many runs would take
    monkeypatch.setattr("gc.collect", lambda: 0)
    false = 0
    for seed in range(150):
        judgement = judged(simulated(seed, effects={"base": 1, "same": 1, "again": 1}, count=3), 3)
        false += any(comparison.verdict in ("faster", "slower") for comparison in judgement.comparisons)
    assert false / 150 <= 0.05 + 0.05


def test_a_planted_two_percent_is_found_with_the_right_sign() -> None:
    judgement = judged(simulated(3, effects={"base": 1, "quick": 0.98, "slow": 1.02}, blocks=20), 10)
    verdicts = {(comparison.variant, comparison.verdict) for comparison in judgement.comparisons}
    assert verdicts == {("quick", "faster"), ("slow", "slower")}
    assert [mean.verdict for mean in judgement.geometric_means] == ["faster", "slower"]
    assert judgement.geometric_means[0].estimate
    assert judgement.geometric_means[0].estimate.ratio == pytest.approx(1 / 0.98, abs=0.003)


def test_more_is_faster_where_higher_is_better() -> None:
    lower = [boot(v, b, {"b0": x}) for b in range(5) for v, x in (("base", 100.0), ("v", 110.0))]
    assert only(judged(lower)).verdict == "slower"
    higher = judged(lower, direction="higher")  # the same samples take more time for the same bytes: less bandwidth
    assert only(higher).verdict == "slower"
    estimate = only(higher).estimate
    assert estimate
    assert estimate.ratio == pytest.approx(100 / 110)


def test_identical_samples_are_equivalent_and_the_ratio_is_exactly_one() -> None:
    boots = [boot(v, b, {"b0": 1 + b / 7, "b1": 3.3}) for b in range(5) for v in ("base", "v")]
    judgement = judged(boots, 2, margin=0.0)
    assert {comparison.verdict for comparison in judgement.comparisons} == {"equivalent"}
    assert {comparison.estimate.ratio for comparison in judgement.comparisons if comparison.estimate} == {1.0}
    assert judgement.geometric_means[0].verdict == "equivalent"


def test_an_exact_difference_outside_the_margin_is_a_verdict_and_inside_it_is_negligible() -> None:
    boots = [boot(v, b, {"b0": x}) for b in range(12) for v, x in (("base", 1000.0), ("v", 1005.0))]
    assert only(judged(boots, margin=0.01)).verdict == "equivalent"
    outside = only(judged(boots, margin=0.001))
    assert outside.verdict == "slower"
    assert outside.sentence == (
        "test 0 0.50 % higher: slower, identical in all 12 blocks; something that happens in up to 22 % of boots is "
        "not excluded"
    )


def test_noise_wider_than_the_margin_stays_undecided() -> None:
    boots = [boot(v, b, {"b0": 100 + (3 * (-1) ** b if v == "v" else 0)}) for b in range(6) for v in ("base", "v")]
    comparison = only(judged(boots))
    assert comparison.verdict == "undecided"
    assert comparison.estimate
    assert comparison.estimate.detectable
    assert comparison.estimate.detectable > 0.03
    assert "this run could have seen" in comparison.sentence


def test_one_block_is_undecided_even_when_equal() -> None:
    comparison = only(judged([boot("base", 0, {"b0": 5.0}), boot("v", 0, {"b0": 5.0})]))
    assert (comparison.verdict, comparison.reason) == ("undecided", "one block: no spread known")
    assert comparison.estimate
    assert comparison.estimate.ratio == 1


def test_blocks_without_one_of_the_two_are_dropped_and_counted() -> None:
    boots = [boot(v, b, {"b0": 100.0 + b}) for b in range(5) for v in ("base", "v") if (v, b) != ("v", 3)]
    boots.append(boot("v", 3, {}, status="failed", reason="panic"))
    comparison = only(judged(boots))
    assert comparison.estimate
    assert (comparison.estimate.blocks, comparison.dropped) == (4, 1)


def test_a_benchmark_that_cannot_run_says_why_and_is_left_out_of_the_mean() -> None:
    boots = [boot("base", b, {"b0": 1.0, "b1": 2.0}) for b in range(3)] + [
        boot("v", b, {"b0": 1.0}, unsupported={"b1": "no CONFIG_UNIX"}) for b in range(3)
    ]
    judgement = judged(boots, 2)
    absent = judgement.comparisons[1]
    assert (absent.verdict, absent.estimate) == (None, None)
    assert absent.reason == "unsupported in v: no CONFIG_UNIX"
    assert (judgement.geometric_means[0].benchmarks, judgement.geometric_means[0].left_out) == (1, ("b1",))


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        ([boot("v", 0, {}, status="failed", reason="panic: oops")], "no boot of v succeeded; the first failed: panic"),
        ([boot("v", 0, {}, status="lost", reason="killed")], "no boot of v succeeded; the first lost: killed"),
        ([boot("v", 0, {}, broken={"b0": "exit 1"})], "broken in v: exit 1"),
        ([boot("v", 0, {})], "not measured in v"),
        ([boot("v", 1, {"b0": 1.0})], "no block in which both were measured"),
    ],
)
def test_the_reason_for_no_comparison_is_the_first_cause(theirs: list[BootRecord], reason: str) -> None:
    judgement = judged([boot("base", 0, {"b0": 1.0}), *theirs])
    assert only(judgement).reason.startswith(reason)
    assert judgement.geometric_means[0].estimate is None
    assert judgement.geometric_means[0].reason


def with_parts(*parts: str) -> Judgement:
    """b0 takes 2 % less in each block, b1 as long, b2 5 % more."""
    boots = []
    for block in range(6):
        base = dict.fromkeys(("b0", "b1", "b2"), 1000.0 + 10 * block)
        ratios = {"b0": 0.98, "b1": 1.0, "b2": 1.05}
        boots += [boot("base", block, base), boot("other", block, {name: base[name] * ratios[name] for name in base})]
    described = [benchmark.model_copy(update={"is_part": benchmark.name in parts}) for benchmark in benchmarks(3)]
    names = ["base", "other"]
    return judge(observations(boots, described, names), names, "base", margin=0.01, alpha=0.05)


def test_parts_of_what_others_measure_are_judged_and_stay_out_of_the_mean() -> None:
    judgement = with_parts("b2")
    assert [comparison.verdict for comparison in judgement.comparisons][::2] == ["faster", "slower"]
    [mean] = judgement.geometric_means
    assert (mean.benchmarks, mean.left_out) == (2, ("b2",))
    assert mean.estimate and mean.estimate.ratio == pytest.approx(0.98**-0.5)


def test_if_there_is_nothing_but_parts_they_are_the_mean() -> None:
    [mean] = with_parts("b0", "b1", "b2").geometric_means
    assert (mean.benchmarks, mean.left_out) == (3, ())


def test_holm_counts_every_comparison_of_the_run() -> None:
    boots = simulated(11, effects={"base": 1, "v": 1.004, "w": 1}, count=6)
    few, many = judged([b for b in boots if b.variant != "w"], 6), judged(boots, 6)
    smallest = min(
        comparison.estimate.p
        for comparison in many.comparisons
        if comparison.estimate and comparison.estimate.p is not None
    )
    assert min(
        comparison.p_adjusted for comparison in many.comparisons if comparison.p_adjusted is not None
    ) == pytest.approx(12 * smallest)
    first_few, first_many = few.comparisons[0].p_adjusted, many.comparisons[0].p_adjusted
    assert first_few is not None
    assert first_many is not None
    assert first_many >= first_few


def test_a_run_without_a_single_boot_is_judged_without_a_verdict() -> None:
    why = partial(absence.reason, [], {})
    judgement = judge(observations([], benchmarks(1), ()), ["base", "v"], "base", margin=0.01, alpha=0.05, why=why)
    assert only(judgement).reason == "no boot of base yet"
