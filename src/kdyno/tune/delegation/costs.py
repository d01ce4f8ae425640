"""The cost of a kernel: the modelled cycles of each source file's code, or its part of a measured time. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.base.errors import InfrastructureError
from kdyno.kernel.vmlinux.sources import NOWHERE, Sources
from kdyno.measure.cycles.family import Family
from kdyno.measure.cycles.predict import cycles
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.tune.delegation.trial import CostTrial, Ratios
from kdyno.understand.explain.measured import MeasuredRegion


class NoCostMeasured(InfrastructureError):
    message = "the reference kernel left no modelled cycles to tune by"
    hint = 'run the experiment with clock = "cycles" by `kdyno run`, and see the report for the cause'


@dataclass(frozen=True)
class BootCost:
    """Modelled cycles per unit of work of one benchmark in one boot, in task and exception context."""

    cycles: float
    """The cycles of all code, including user code and code without a file."""
    by_file: Mapping[str, float]
    """The cycles by source file."""

    def as_part(self, ratio: float) -> BootCost:
        """Return the cost as parts of the reference's time: all of it is `ratio`, divided as the cycles are."""
        scale = ratio / self.cycles
        return BootCost(ratio, {file: cycles * scale for file, cycles in self.by_file.items()})


def boot_costs(
    record: PmuRecord, benchmarks: Sequence[str], work: Mapping[str, Sequence[int]], sources: Sources, family: Family
) -> dict[str, BootCost]:
    """Return the cost by benchmark. `benchmarks` are names of the record's regions, `work` that of iterations."""
    costs = {}
    files = sources.files(np.array([function.address for function in record.functions], np.uint64))
    for index, region in record.regions.items():
        name = benchmarks[index] if index < len(benchmarks) else ""
        if not (total_work := sum(work.get(name, ()))):
            continue
        measured_region = MeasuredRegion(record, region, total_work)
        cycles_by_file: dict[str, float] = defaultdict(float)
        for context in measured_region.contexts:
            for function, events in context.functions.items():
                if files[function] != NOWHERE:
                    cycles_by_file[files[function]] += float(cycles(events, record.names, family)) / total_work
        costs[name] = BootCost(float(cycles(measured_region.events, record.names, family)), dict(cycles_by_file))
    return costs


def trial_of(boots: Sequence[Mapping[str, BootCost]], reference: Mapping[str, float]) -> CostTrial | None:
    """Return the cost of a kernel from its boots in the order of replicates; None if one lacks a benchmark.

    `reference` has the cycles of the reference by benchmark. A cost is the mean over the benchmarks.
    """
    if any(name not in boot for boot in boots for name in reference):
        return None
    files = sorted({file for boot in boots for name in reference for file in boot[name].by_file})
    return CostTrial(
        total=np.array([_mean({n: boot[n].cycles for n in reference}, reference) for boot in boots]),
        by_file={
            file: np.array([_mean({n: boot[n].by_file.get(file, 0.0) for n in reference}, reference) for boot in boots])
            for file in files
        },
    )


def reference_cycles(boots: Sequence[Mapping[str, BootCost]]) -> dict[str, float]:
    """Return the mean cycles of each benchmark that all boots of the reference have. Raises NoCostMeasured."""
    names = [name for name in boots[0] if all(name in boot and boot[name].cycles > 0 for boot in boots)]
    if not names:
        raise NoCostMeasured()
    return {name: math.fsum(boot[name].cycles for boot in boots) / len(boots) for name in names}


def timed_trial(costs: Mapping[str, BootCost], ratios: Ratios, benchmarks: Sequence[str]) -> CostTrial | None:
    """Return the cost of a timed kernel; None if it left no cycles of one of the benchmarks.

    The clock says how long a benchmark took, as a part of the reference's time. The modelled cycles of one boot say how
    that time divides among files.
    """
    if any(name not in costs or costs[name].cycles <= 0 for name in benchmarks):
        return None
    boots = [{name: costs[name].as_part(ratio[name]) for name in benchmarks} for ratio in ratios]
    return trial_of(boots, dict.fromkeys(benchmarks, 1.0))


def _mean(cycles_by_benchmark: Mapping[str, float], reference: Mapping[str, float]) -> float:
    return math.fsum(cycles_by_benchmark[name] / reference[name] for name in reference) / len(reference)
