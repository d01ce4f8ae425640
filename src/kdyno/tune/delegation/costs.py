"""From the PMU records of boots to the cost of a kernel: what each source file's code took of the cycles. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.base.errors import InfrastructureError
from kdyno.measure.cycles.family import Family
from kdyno.measure.cycles.predict import cycles
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.sources import NOWHERE, Sources
from kdyno.tune.delegation.trial import CostTrial
from kdyno.understand.explain.measured import MeasuredRegion


class NoCostMeasured(InfrastructureError):
    message = "the reference kernel left no modelled cycles to tune by"
    hint = '`kdyno run` the experiment with clock = "cycles" first: its report says what went wrong'


@dataclass(frozen=True)
class BootCost:
    """Modelled cycles per unit of work of one benchmark in one boot, in task and exception context."""

    cycles: float
    """With user code, and with code that is of no file."""
    by_file: Mapping[str, float]


def boot_costs(
    record: PmuRecord, benchmarks: Sequence[str], work: Mapping[str, Sequence[int]], sources: Sources, family: Family
) -> dict[str, BootCost]:
    """By benchmark; `benchmarks` are the names of the record's regions, `work` what their iterations did."""
    costs = {}
    files = sources.files(np.array([function.address for function in record.functions], np.uint64))
    for index, region in record.regions.items():
        name = benchmarks[index] if index < len(benchmarks) else ""
        if not (done := sum(work.get(name, ()))):
            continue
        measured = MeasuredRegion(record, region, done)
        by_file: dict[str, float] = defaultdict(float)
        for context in measured.contexts:
            for function, events in context.functions.items():
                if files[function] != NOWHERE:
                    by_file[files[function]] += float(cycles(events, record.names, family)) / done
        costs[name] = BootCost(float(cycles(measured.events, record.names, family)), dict(by_file))
    return costs


def trial_of(boots: Sequence[Mapping[str, BootCost]], reference: Mapping[str, float]) -> CostTrial | None:
    """The cost of a kernel, of its boots in the order of the replicates; None if a benchmark is missing in one.

    `reference` is what the reference takes, by benchmark. A cost is the mean over benchmarks of what it is there.
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
    """What each benchmark that all boots of the reference have takes there. Raises NoCostMeasured."""
    names = [name for name in boots[0] if all(name in boot and boot[name].cycles > 0 for boot in boots)]
    if not names:
        raise NoCostMeasured()
    return {name: math.fsum(boot[name].cycles for boot in boots) / len(boots) for name in names}


def _mean(cycles_by_benchmark: Mapping[str, float], reference: Mapping[str, float]) -> float:
    return math.fsum(cycles_by_benchmark[name] / reference[name] for name in reference) / len(reference)
