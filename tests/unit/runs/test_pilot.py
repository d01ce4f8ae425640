"""blocks = "auto": the noise that a pilot saw decides how many blocks and iterations come after it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from kdyno.base.measurement import Benchmark, Sample
from kdyno.base.text import percent
from kdyno.judge.stats.planning.power import find_replicates
from kdyno.kernel.recipe import Recipe
from kdyno.runs.experiment.models import Experiment, JudgeConfig
from kdyno.runs.pilot import PilotSaysNothing, SettledExperiment, pilot_of, settle
from kdyno.store.records import BootRecord, RunRecord
from tests.unit import specimen

CALLS = 1_000_000
BENCHMARK = Benchmark(name="lat_x", test="lat_x", unit="ns", direction="lower", description="x")
NAMES = ("gcc-12", "gcc-12-O3")


def boots(
    between: float,
    within: float,
    *,
    blocks: int = 60,
    layout: float = 0.0,
    layouts: int = 0,
    readings: int = 8,
    slow: float = 0.0,
) -> list[BootRecord]:
    """Boots whose values have these standard deviations of the logarithm, as fractions, by level.

    One reading in ten takes `slow` more (a fraction).
    """
    noise = np.random.default_rng(1)
    of_layout = {(name, k): noise.normal(0, layout) for name in NAMES for k in range(max(1, layouts))}
    records: list[BootRecord] = []
    for block in range(blocks):
        for name in NAMES:
            number = block % layouts if layouts else 0
            middle = of_layout[name, number] + noise.normal(0, between)
            values = 100 * CALLS * np.exp(middle + noise.normal(0, within, readings))
            values *= 1 + slow * (noise.random(readings) < 0.1)
            samples = tuple(
                Sample(benchmark="lat_x", iteration=i, elapsed=int(reading), work=CALLS)
                for i, reading in enumerate(values)
            )
            records.append(
                BootRecord(
                    key=f"{name}, block {block}",
                    variant=name,
                    block=block,
                    position=len(records),
                    layout_index=number,
                    seed=1,
                    status="ok",
                    started=specimen.NOON,
                    seconds=3.0,
                    ready_seconds=2.2,
                    samples=samples,
                )
            )
    return records


def experiment(effect: float, **settings: Any) -> Experiment:
    return Experiment(
        name="x",
        source="s",
        baseline=NAMES[0],
        variants=dict.fromkeys(NAMES, Recipe()),
        auto=True,
        judge=JudgeConfig(effect=effect, most_blocks=500),
        **settings,
    )


def run(layouts: int = 0) -> RunRecord:
    return specimen.run_record(variants=NAMES).model_copy(update={"layouts": layouts})


def settled(effect: float, *noise: float, **settings: Any) -> SettledExperiment:
    return settle(experiment(effect, **settings), run(), boots(*noise), [BENCHMARK])


def test_half_the_effect_needs_four_times_the_blocks() -> None:
    coarse, fine = (settled(effect, 0.01, 0.001).experiment.blocks for effect in (0.008, 0.004))
    assert fine == pytest.approx(4 * coarse, rel=0.15)
    # both variants vary by 1 %, so the log-ratio by 1.41 %; for 90 % power (3.24 + a little) errors are needed, and
    # the variance may be 59 / 48.1 of what a pilot of 60 blocks saw: the chi-square quantile of 15 %
    assert fine == pytest.approx((3.24 * 0.0141 / 0.004) ** 2 * 59 / 48.1, rel=0.25)


def test_noise_within_boots_asks_for_iterations_and_noise_between_boots_for_blocks() -> None:
    within, between = settled(0.01, 0.001, 0.02).experiment, settled(0.01, 0.02, 0.001).experiment
    assert within.workload.part("model").iterations > 15
    assert between.workload.part("model").iterations == 3
    assert between.blocks > 2 * within.blocks


def test_an_exact_benchmark_needs_the_fewest_blocks() -> None:
    settlement = settled(0.01, 0.0, 0.0)
    assert settlement.experiment.blocks == 4
    assert not settlement.experiment.auto
    assert "4 blocks" in settlement.experiment.pilot and "to see 1 % with 90 % power" in settlement.experiment.pilot


def test_boots_that_are_alike_need_the_fewest_blocks_although_one_iteration_in_ten_is_slow() -> None:
    alike = settle(experiment(0.01), run(), boots(0.0, 0.001, blocks=6, readings=11, slow=0.5), [BENCHMARK])
    assert alike.experiment.blocks == 4
    assert "Not enough" not in " ".join(alike.why)


def test_iterations_are_not_spared_where_a_slow_one_would_then_be_the_median() -> None:
    # boots differ: without slow ones three iterations of each are the best that there are
    even, slow = (
        settle(experiment(0.05), run(), boots(0.03, 0.001, blocks=30, readings=11, slow=share), [BENCHMARK])
        for share in (0.0, 0.5)
    )
    assert even.experiment.workload.part("model").iterations == 3
    assert slow.experiment.workload.part("model").iterations > 5


def test_a_pilot_of_six_blocks_is_not_taken_at_its_word_and_the_plan_says_so() -> None:
    six = settle(experiment(0.01), run(), boots(0.01, 0.0, blocks=6), [BENCHMARK])
    logs = np.log(np.array([boot.samples[0].elapsed for boot in boots(0.01, 0.0, blocks=6)], dtype=float)).reshape(6, 2)
    sd = float(np.std(logs[:, 1] - logs[:, 0], ddof=1))
    bound = sd * math.sqrt(5 / 1.994)  # 1.994: the chi-square quantile of 15 % with 5 degrees of freedom
    needed = find_replicates(0.01, bound, 0.05, aim=0.9)
    assert six.experiment.blocks == pytest.approx(needed, abs=1)
    trusting = find_replicates(0.01, sd, 0.05, aim=0.9)
    assert trusting
    assert six.experiment.blocks > 2 * trusting
    assert six.why[1] == (
        f"That holds for noise of up to {percent(math.expm1(bound))} % from block to block: the pilot saw "
        f"{percent(math.expm1(sd))} %, and it is at most that with 85 % confidence."
    )


def test_a_benchmark_that_no_allowed_plan_can_judge_is_named() -> None:
    settlement = settled(0.0001, 0.01, 0.001)
    assert settlement.experiment.blocks == 500
    assert "Not enough, within the limit set, for: lat_x of gcc-12-O3 (± 0.1" in settlement.why[-1]


def test_layouts_are_what_is_repeated_where_they_make_the_noise() -> None:
    noisy = boots(0.0005, 0.0005, layout=0.01, layouts=10)
    settlement = settle(experiment(0.02, layouts=64), run(10), noisy, [BENCHMARK])
    assert settlement.experiment.layouts >= 5
    assert settlement.experiment.blocks == settlement.experiment.layouts


def test_the_pilot_is_a_short_run_of_its_own_in_which_each_layout_is_there_twice() -> None:
    pilot = pilot_of(experiment(0.01, layouts=20))
    assert (pilot.name, pilot.blocks, pilot.layouts, pilot.auto) == ("x-pilot", 12, 6, False)
    assert (pilot_of(experiment(0.01)).blocks, pilot_of(experiment(0.01)).layouts) == (6, 0)


def test_a_pilot_without_a_pair_of_boots_is_said_to_say_nothing() -> None:
    with pytest.raises(PilotSaysNothing, match="measured no benchmark in two blocks"):
        settle(experiment(0.01), run(), [], [BENCHMARK])
