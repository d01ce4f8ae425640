"""The PMU records of two variants of a run: those that its boots carry, or those of boots made for the purpose."""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.measurement import Benchmark, Sample
from kdyno.base.text import clean
from kdyno.measure.cycles.budget import Unit
from kdyno.measure.cycles.family import Family, load_family
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.guest.pmu_record import PmuRecord, read_pmu_record
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import BootRecord, RunRecord
from kdyno.understand.explain.measured import MeasuredRegion

BYTES_OF_KIB = 1024


class UnknownBenchmark(UserError):
    message = "run {run} has no benchmark {name}"
    hint = "did you mean {near}?"


class NotMeasured(UserError):
    message = "{benchmark} was not measured in {variant}: {why}"
    hint = "only a benchmark that both kernels can run can be compared"


class WorkUnknown(InfrastructureError):
    message = "the PMU record of {variant} and its samples of {benchmark} don't belong together: {why}"
    hint = "agent, plugin and kdyno must be of one release: pip install ."


@dataclass(frozen=True)
class Recorded:
    """What the PMU counted in one boot, and what is needed to read it."""

    variant: str
    record: PmuRecord
    benchmarks: tuple[str, ...]
    """Names by the number of their region."""
    work: Mapping[str, Sequence[int]]
    """Benchmark -> operations or bytes of its iterations."""
    absent: Mapping[str, str]
    """Benchmarks that this kernel didn't run, and why."""

    def measured(self, benchmark: Benchmark) -> MeasuredRegion:
        """A benchmark's region, its work in operations or in KiB. Raises NotMeasured and WorkUnknown."""
        name = benchmark.name
        if name not in self.work or name not in self.benchmarks:
            why = self.absent.get(name, "it left no samples")
            raise NotMeasured(benchmark=name, variant=self.variant, why=clean(why))
        region = self.record.regions.get(self.benchmarks.index(name))
        if region is None:
            raise WorkUnknown(variant=self.variant, benchmark=name, why="the record has no region for it")
        work = self.work[name]
        if len(work) != len(region.iterations):
            raise WorkUnknown(
                variant=self.variant,
                benchmark=name,
                why=f"{len(region.iterations)} iterations in the one, {len(work)} in the other",
            )
        return MeasuredRegion(self.record, region, sum(work) / (BYTES_OF_KIB if unit_of(benchmark) == "KiB" else 1))


def family_of(run: RunRecord, record: PmuRecord) -> Family:
    """The CPU family that a record of a run was made with. The experiment names it, or its file."""
    named = json.loads(run.experiment)
    for name in ("machine", "pmu", "family"):
        named = named.get(name) if isinstance(named, dict) else None
    if isinstance(named, str) and (family := load_family(named)).name == record.family:
        return family
    return load_family(record.family or PmuConfig().family)


def unit_of(benchmark: Benchmark) -> Unit:
    """What amounts are per: bandwidths count bytes, everything else operations."""
    return "KiB" if benchmark.direction == "higher" else "op"


def find_benchmark(run: str, benchmarks: Sequence[Benchmark], name: str) -> Benchmark:
    """The benchmark of this name. Raises UnknownBenchmark, which names the nearest."""
    known = {benchmark.name: benchmark for benchmark in benchmarks}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.3) or sorted(known)[:3]
    raise UnknownBenchmark(
        run=run, name=name, near=" or ".join(clean(candidate) for candidate in near) or "none was measured"
    )


def common_boots(boots: Iterable[BootRecord], *variants: str) -> tuple[BootRecord, ...] | None:
    """The boots of all variants in the first block where all are `ok`; those with PMU records come first."""
    by_block: dict[int, dict[str, BootRecord]] = defaultdict(dict)
    for boot in boots:
        if boot.status == "ok":
            by_block[boot.block][boot.variant] = boot
    together = [
        tuple(of_block[variant] for variant in variants)
        for _, of_block in sorted(by_block.items())
        if all(variant in of_block for variant in variants)
    ]
    return min(together, key=lambda boots: not has_records(boots), default=None)


def has_records(boots: Sequence[BootRecord]) -> bool:
    return all(boot.pmu for boot in boots)


def of_boot(boot: BootRecord, artefacts: Artefacts) -> Recorded:
    """Read the record that a boot of the run carries. Raises the errors of artefacts and of PMU records."""
    assert boot.pmu is not None
    record = read_pmu_record(artefacts.get(boot.pmu))
    return Recorded(
        variant=boot.variant,
        record=record,
        benchmarks=record.benchmarks,
        work=work_of(boot.samples),
        absent={**boot.unsupported, **boot.broken},
    )


def work_of(samples: Iterable[Sample]) -> dict[str, list[int]]:
    """Benchmark -> work of each sample that has some."""
    work: dict[str, list[int]] = defaultdict(list)
    for sample in samples:
        if sample.work is not None:
            work[sample.benchmark].append(sample.work)
    return dict(work)
