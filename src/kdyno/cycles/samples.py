"""What the emulated PMU counted, as samples: instructions, or modelled cycles. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kdyno.errors import InfrastructureError
from kdyno.instrument.pmu import Clock
from kdyno.measurement import INT64_MAX, Benchmark, Sample

if TYPE_CHECKING:
    from kdyno.cycles.family import Family
    from kdyno.instrument.pmu_record import PmuRecord

CYCLE_UNITS = {"instr": "cycles", "B/instr": "B/cycle"}


class RegionMissing(InfrastructureError):
    message = "the PMU counted nothing for {benchmark}, iteration {iteration}"
    hint = "agent, plugin and kdyno must be of one release: pip install ."


def in_units(benchmarks: Sequence[Benchmark], clock: Clock) -> tuple[Benchmark, ...]:
    """Benchmarks as the clock's samples have them; failed boots name theirs in these units too."""
    if clock == "instructions":
        return tuple(benchmarks)
    return tuple(each.model_copy(update={"unit": CYCLE_UNITS.get(each.unit, each.unit)}) for each in benchmarks)


def in_clock(
    samples: Sequence[Sample], benchmarks: Sequence[Benchmark], record: PmuRecord, family: Family, clock: Clock
) -> tuple[Sample, ...]:
    """The samples of a boot, each with what the PMU counted in its region in the place of elapsed guest time. Pure.

    `benchmarks` are in the order of the agent stream, which numbers the regions. A sample is its region's contexts task
    and exception; what interrupts did is left out. `cycles` are modelled by the family's weights;
    `instructions` count a REP string instruction once. Raises RegionMissing.
    """
    import numpy as np

    number = {benchmark.name: index for index, benchmark in enumerate(benchmarks)}
    counts = np.zeros((len(samples), len(record.names)), np.uint64)  # samples x events
    for row, sample in enumerate(samples):
        region = record.regions.get(number[sample.benchmark])
        if region is None or sample.iteration not in region.iterations:
            raise RegionMissing(benchmark=sample.benchmark, iteration=sample.iteration)
        task, exception, _interrupt = region.iterations[sample.iteration]
        counts[row] = task + exception
    if clock == "cycles":
        from kdyno.cycles.predict import cycles

        readings = cycles(counts, record.names, family)
    else:
        both = [column for column, name in enumerate(record.names) if name in ("instructions", "user_instructions")]
        readings = counts[:, both].sum(axis=1).astype(np.float64)
    return tuple(
        sample.model_copy(update={"elapsed": min(max(1, round(reading)), INT64_MAX)})
        for sample, reading in zip(samples, readings.tolist(), strict=True)
    )
