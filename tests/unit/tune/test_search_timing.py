"""Times of trials: a trial's time as a part of the reference's, by link order."""

from __future__ import annotations

from typing import Literal

import pytest

from kdyno.base.measurement import Benchmark
from kdyno.tune.delegation.timing import REFERENCE, TRIAL, time_ratios


def benchmark(name: str, direction: Literal["lower", "higher"] = "lower") -> Benchmark:
    return Benchmark(
        name=name, test=name, description=name, unit="ns" if direction == "lower" else "MB/s", direction=direction
    )


def test_the_ratio_of_a_link_order_is_the_geometric_mean_over_its_blocks() -> None:
    values = {
        (REFERENCE, "pipe_1"): {0: 100.0, 1: 100.0, 2: 200.0, 3: 100.0},
        (TRIAL, "pipe_1"): {0: 50.0, 1: 100.0, 2: 400.0, 3: 121.0},
    }
    ratios = time_ratios(values, [benchmark("pipe_1")], 2)
    assert [ratio["pipe_1"] for ratio in ratios] == pytest.approx([1.0, 1.1])


def test_drift_of_the_host_between_blocks_leaves_the_ratio_alone() -> None:
    values = {(REFERENCE, "a"): {0: 100.0, 1: 1000.0}, (TRIAL, "a"): {0: 90.0, 1: 900.0}}
    [ratio] = time_ratios(values, [benchmark("a")], 1)
    assert ratio["a"] == pytest.approx(0.9)


def test_a_bandwidth_that_doubles_is_half_the_time() -> None:
    values = {(REFERENCE, "a"): {0: 100.0}, (TRIAL, "a"): {0: 200.0}}
    [ratio] = time_ratios(values, [benchmark("a", "higher")], 1)
    assert ratio["a"] == pytest.approx(0.5)


def test_a_benchmark_without_a_common_block_in_each_link_order_is_left_out() -> None:
    values = {
        (REFERENCE, "a"): {0: 1.0, 1: 1.0},
        (TRIAL, "a"): {0: 1.0},
        (REFERENCE, "b"): {0: 1.0, 1: 1.0},
        (TRIAL, "b"): {0: 1.0, 1: 1.0},
    }
    assert [set(ratio) for ratio in time_ratios(values, [benchmark("a"), benchmark("b")], 2)] == [{"b"}, {"b"}]
