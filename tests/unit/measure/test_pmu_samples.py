"""Samples from PMU records: which contexts count, in which unit, and records that don't have what samples need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kdyno.base.measurement import Benchmark, Sample
from kdyno.measure.cycles.family import load_family
from kdyno.measure.cycles.predict import cycles
from kdyno.measure.cycles.samples import RegionMissing, convert_samples, convert_units
from kdyno.measure.guest.pmu import plugin_words
from kdyno.measure.guest.pmu_parts import BLOCK, BRANCH, ContextCounts, Region
from kdyno.measure.guest.pmu_record import PmuRecord

NAMES = ("instructions", "l1d_misses", "user_instructions")
EMPTY = ContextCounts(np.zeros(0, BLOCK), np.zeros(0, BRANCH), {})
BENCHMARKS = (
    Benchmark(name="lat_syscall.null", test="lat_syscall", unit="instr", direction="lower", description=""),
    Benchmark(name="bw_pipe", test="bw_pipe", unit="B/instr", direction="higher", description=""),
)
SAMPLES = (
    Sample(benchmark="lat_syscall.null", iteration=0, elapsed=9000, work=10),
    Sample(benchmark="lat_syscall.null", iteration=1, elapsed=9000, work=10),
    Sample(benchmark="bw_pipe", iteration=0, elapsed=9000, work=65536),
)
FAMILY = load_family("znver4")


def record(regions: dict[int, dict[int, list[list[int]]]]) -> PmuRecord:
    """Counts by benchmark and iteration: a row of events for each context."""
    return PmuRecord(
        plugin="0.1.0",
        scope="kernel",
        events="all",
        image=None,
        family="znver4",
        names=NAMES,
        opened=1,
        unclosed=None,
        functions=(),
        regions={
            number: Region(
                number, {i: np.array(rows, np.uint64) for i, rows in iterations.items()}, (EMPTY, EMPTY, EMPTY), ()
            )
            for number, iterations in regions.items()
        },
    )


COUNTED = record(
    {
        0: {0: [[100, 7, 20], [10, 1, 0], [5000, 300, 0]], 1: [[100, 7, 20], [0, 0, 0], [0, 0, 0]]},
        1: {0: [[70_000, 900, 1], [0, 0, 0], [0, 0, 0]]},
    }
)


def test_instructions_are_those_of_user_code_and_of_the_kernel_in_tasks_and_exceptions() -> None:
    samples = convert_samples(SAMPLES, BENCHMARKS, COUNTED, FAMILY, "instructions")
    assert [sample.elapsed for sample in samples] == [130, 120, 70_001]
    assert [(sample.benchmark, sample.iteration, sample.work) for sample in samples] == [
        (sample.benchmark, sample.iteration, sample.work) for sample in SAMPLES
    ]


def test_cycles_are_modelled_from_the_same_events() -> None:
    samples = convert_samples(SAMPLES, BENCHMARKS, COUNTED, FAMILY, "cycles")
    events = np.array([[110, 8, 20], [100, 7, 20], [70_000, 900, 1]], np.uint64)
    assert [sample.elapsed for sample in samples] == [
        max(1, round(count)) for count in cycles(events, NAMES, FAMILY).tolist()
    ]


def test_a_sample_that_is_a_value_of_its_own_is_left_as_it_is() -> None:
    own = Sample(benchmark="p99", iteration=0, value=1.5)
    assert convert_samples((own, SAMPLES[2]), BENCHMARKS, COUNTED, FAMILY, "instructions") == (
        own,
        SAMPLES[2].model_copy(update={"elapsed": 70_001}),
    )


def test_a_region_in_which_nothing_was_counted_is_one_unit_long() -> None:
    nothing = record({0: {0: [[0, 0, 0], [0, 0, 0], [9, 9, 9]]}})
    for clock in ("cycles", "instructions"):
        assert convert_samples(SAMPLES[:1], BENCHMARKS, nothing, FAMILY, clock)[0].elapsed == 1


def test_counts_beyond_what_a_store_holds_are_cut() -> None:
    huge = record({0: {0: [[2**64 - 1, 0, 0], [0, 0, 0], [0, 0, 0]]}})
    assert convert_samples(SAMPLES[:1], BENCHMARKS, huge, FAMILY, "instructions")[0].elapsed == 2**63 - 1


@pytest.mark.parametrize("counts", [{}, {0: {0: [[1, 1, 1]] * 3}}])
def test_a_sample_without_its_region_is_named(counts: dict[int, dict[int, list[list[int]]]]) -> None:
    iteration = 1 if counts else 0
    with pytest.raises(RegionMissing, match=f"nothing for lat_syscall.null, iteration {iteration}"):
        convert_samples(SAMPLES, BENCHMARKS, record(counts), FAMILY, "instructions")


def test_a_boot_without_samples_needs_no_regions() -> None:
    assert convert_samples((), BENCHMARKS, record({}), FAMILY, "cycles") == ()


def test_units_say_which_clock_was_read() -> None:
    assert [sample.unit for sample in convert_units(BENCHMARKS, "cycles")] == ["cycles", "B/cycle"]
    assert [sample.unit for sample in convert_units(BENCHMARKS, "instructions")] == ["instr", "B/instr"]
    of_a_command = BENCHMARKS[0].model_copy(update={"unit": "requests/s"})
    assert convert_units([of_a_command], "cycles") == (of_a_command,)


def test_the_plugin_gets_its_options_with_commas_doubled() -> None:
    words = plugin_words(
        Path("/p,q/plugin.so"),
        out=Path("/o,1"),
        events="all",
        symbols=Path("/s"),
        image="ab",
        geometry=Path("/znver4.toml"),
    )
    assert words == (
        "-plugin",
        "/p,,q/plugin.so,out=/o,,1,scope=kernel,events=all,symbols=/s,image=ab,geometry=/znver4.toml",
    )
