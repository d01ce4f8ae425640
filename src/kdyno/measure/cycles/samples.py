"""The emulated PMU's counts as samples: instructions, or modelled cycles. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kdyno.base.errors import InfrastructureError
from kdyno.base.lanes import COUNTED_LANE, PMU_CLOCKS
from kdyno.base.measurement import INT64_MAX, Benchmark, Sample
from kdyno.measure.guest.pmu import Clock

if TYPE_CHECKING:
    from kdyno.measure.cycles.family import Family
    from kdyno.measure.guest.pmu_record import PmuRecord


class RegionMissing(InfrastructureError):
    message = "the PMU counted nothing for {benchmark}, iteration {iteration}"
    hint = "agent, plugin and kdyno must be of one release: pip install ."


def convert_units(benchmarks: Sequence[Benchmark], clock: Clock) -> tuple[Benchmark, ...]:
    """Benchmarks as the clock's samples have them; failed boots name theirs in these units too."""
    units = [PMU_CLOCKS[clock].unit_for(benchmark.unit, COUNTED_LANE.clock) for benchmark in benchmarks]
    return tuple(benchmark.model_copy(update={"unit": unit}) for benchmark, unit in zip(benchmarks, units, strict=True))


def convert_samples(
    samples: Sequence[Sample], benchmarks: Sequence[Benchmark], record: PmuRecord, family: Family, clock: Clock
) -> tuple[Sample, ...]:
    """Return the samples of a boot, with the PMU's counts of each region instead of elapsed guest time. Pure.

    `benchmarks` are in the order of the agent stream, which numbers the regions. A sample covers its region's contexts
    task and exception; the work of interrupts is left out. `cycles` are modelled by the family's weights;
    `instructions` count a REP string instruction once. Samples that are values of their own have no region, and are
    unchanged. Raise RegionMissing.
    """
    import numpy as np

    number = {benchmark.name: index for index, benchmark in enumerate(benchmarks)}
    timed = [sample for sample in samples if sample.elapsed is not None]
    counts = np.zeros((len(timed), len(record.names)), np.uint64)  # samples x events
    for row, sample in enumerate(timed):
        region = record.regions.get(number[sample.benchmark])
        if region is None or sample.iteration not in region.iterations:
            raise RegionMissing(benchmark=sample.benchmark, iteration=sample.iteration)
        task, exception, _interrupt = region.iterations[sample.iteration]
        counts[row] = task + exception
    if clock == "cycles":
        from kdyno.measure.cycles.predict import cycles

        readings = cycles(counts, record.names, family)
    else:
        columns = [column for column, name in enumerate(record.names) if name in ("instructions", "user_instructions")]
        readings = counts[:, columns].sum(axis=1).astype(np.float64)
    elapsed = iter(readings.tolist())
    return tuple(
        sample
        if sample.elapsed is None
        else sample.model_copy(update={"elapsed": min(max(1, round(next(elapsed))), INT64_MAX)})
        for sample in samples
    )
