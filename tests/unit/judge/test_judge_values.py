from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from kdyno.base.measurement import Benchmark, Direction, Sample, value
from kdyno.judge.stats.observations import UnusableSample
from kdyno.judge.verdicts.values import table
from kdyno.store.records import BootRecord
from tests.unit import specimen


def benchmark(direction: Direction, unit: str) -> Benchmark:
    return Benchmark(name="b", test="b", unit=unit, direction=direction, description="")


def boot(*elapsed: int, work: int = 10, block: int = 0) -> BootRecord:
    return BootRecord(
        key=f"v, block {block}",
        variant="v",
        block=block,
        position=0,
        seed=1,
        status="ok",
        started=specimen.NOON,
        seconds=1,
        samples=tuple(Sample(benchmark="b", iteration=i, elapsed=e, work=work) for i, e in enumerate(elapsed)),
    )


def test_a_latency_is_the_clock_per_operation() -> None:
    assert value(Sample(benchmark="b", iteration=0, elapsed=1500, work=10), benchmark("lower", "ns")) == 150


def test_a_bandwidth_in_time_is_megabytes_per_second() -> None:
    two_gigabytes_in_a_second = Sample(benchmark="b", iteration=0, elapsed=10**9, work=2 * 10**9)
    assert value(two_gigabytes_in_a_second, benchmark("higher", "MB/s")) == 2000


def test_a_bandwidth_in_instructions_is_bytes_per_instruction() -> None:
    assert value(Sample(benchmark="b", iteration=0, elapsed=100, work=400), benchmark("higher", "B/instr")) == 4


def test_a_value_of_its_own_is_taken_as_it_is_whatever_the_unit() -> None:
    sample = Sample(benchmark="b", iteration=0, value=12.5)
    assert value(sample, benchmark("higher", "MB/s")) == value(sample, benchmark("lower", "ns")) == 12.5


@pytest.mark.parametrize(
    "numbers", [{}, {"elapsed": 1}, {"work": 1}, {"value": 1.0, "work": 1}, {"value": 1.0, "elapsed": 1, "work": 1}]
)
def test_a_sample_is_elapsed_and_work_or_a_value_but_never_both_nor_neither(numbers: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="either `elapsed` and `work`, or a `value`"):
        Sample(benchmark="b", iteration=0, **numbers)


def test_a_boot_is_summed_up_by_the_median_so_that_a_timer_tick_does_not_count() -> None:
    assert table([boot(100, 101, 102, 99, 5000)], [benchmark("lower", "ns")]) == {("v", "b"): {0: 10.1}}


def test_failed_and_lost_boots_have_no_values() -> None:
    failed = boot(100).model_copy(update={"status": "failed"})
    assert table([failed, boot(100, block=1)], [benchmark("lower", "ns")]) == {("v", "b"): {1: 10.0}}


@pytest.mark.parametrize(("elapsed", "work"), [(0, 10), (10, 0), (-5, 10), (10, -1)])
def test_a_sample_that_is_not_positive_is_named_by_boot_and_benchmark(elapsed: int, work: int) -> None:
    with pytest.raises(UnusableSample, match="benchmark 'b', variant 'v', block 3: "):
        table([boot(elapsed, work=work, block=3)], [benchmark("lower", "ns")])


@pytest.mark.parametrize("bad", [0.0, -1.5, math.inf, math.nan])
def test_a_value_that_is_no_positive_number_is_named_too(bad: float) -> None:
    sample = Sample(benchmark="b", iteration=0, value=bad)
    of_value = boot(block=3).model_copy(update={"samples": (sample,)})
    with pytest.raises(UnusableSample, match=f"variant 'v', block 3: {bad:g} is not a positive number"):
        table([of_value], [benchmark("lower", "ns")])
