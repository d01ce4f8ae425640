"""The PMU records of two variants of a run: those of its boots, or of boots that are made for this."""

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


class RunWithoutValues(UserError):
    message = "run {run} has no values of any benchmark"
    hint = "`kdyno show {run}` shows how its boots ended"


class NotMeasured(UserError):
    message = "{benchmark} was not measured in {variant}: {why}"
    hint = "name a benchmark that both kernels can run"


class WorkUnknown(InfrastructureError):
    message = "the PMU record of {variant} and its samples of {benchmark} do not match: {why}"
    hint = "install agent, plugin and kdyno of one release: pip install ."


@dataclass(frozen=True)
class Recorded:
    """The counts of the PMU in one boot, with the names and the work of its benchmarks."""

    variant: str
    record: PmuRecord
    benchmarks: tuple[str, ...]
    """The names by the number of the region."""
    work: Mapping[str, Sequence[int]]
    """Benchmark -> the operations or bytes of its iterations."""
    absent: Mapping[str, str]
    """Benchmarks that this kernel didn't run, with the reasons."""

    def measured_region(self, benchmark: Benchmark) -> MeasuredRegion:
        """Return a benchmark's region with its work in operations or in KiB. Raises NotMeasured and WorkUnknown."""
        name = benchmark.name
        if name not in self.work or name not in self.benchmarks:
            reason = self.absent.get(name, "it left no samples")
            raise NotMeasured(benchmark=name, variant=self.variant, why=clean(reason))
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
    """Return the CPU family of a run's record. The experiment names it, or its file."""
    content = json.loads(run.experiment)
    for name in ("machine", "pmu", "family"):
        content = content.get(name) if isinstance(content, dict) else None
    if isinstance(content, str) and (family := load_family(content)).name == record.family:
        return family
    return load_family(record.family or PmuConfig().family)


def unit_of(benchmark: Benchmark) -> Unit:
    """Return the unit of work: KiB for bandwidths, operations for other benchmarks."""
    return "KiB" if benchmark.direction == "higher" else "op"


def find_benchmark(run: str, benchmarks: Sequence[Benchmark], name: str) -> Benchmark:
    """Find the benchmark of this name. Raises UnknownBenchmark, which names the nearest, or RunWithoutValues."""
    if not benchmarks:
        raise RunWithoutValues(run=run)
    benchmark_by_name = {benchmark.name: benchmark for benchmark in benchmarks}
    if name in benchmark_by_name:
        return benchmark_by_name[name]
    near = difflib.get_close_matches(name, benchmark_by_name, n=3, cutoff=0.3) or sorted(benchmark_by_name)[:3]
    raise UnknownBenchmark(run=run, name=name, near=" or ".join(clean(candidate) for candidate in near))


def common_boots(boots: Iterable[BootRecord], *variants: str) -> tuple[BootRecord, ...] | None:
    """Return the boots of all variants in the first block if all are `ok`, with PMU records if possible, or None."""
    boots_by_block: dict[int, dict[str, BootRecord]] = defaultdict(dict)
    for boot in boots:
        if boot.status == "ok":
            boots_by_block[boot.block][boot.variant] = boot
    complete_blocks = [
        tuple(block_boots[variant] for variant in variants)
        for _, block_boots in sorted(boots_by_block.items())
        if all(variant in block_boots for variant in variants)
    ]
    return min(complete_blocks, key=lambda boots: not has_records(boots), default=None)


def has_records(boots: Sequence[BootRecord]) -> bool:
    return all(boot.pmu for boot in boots)


def read_recording(boot: BootRecord, artefacts: Artefacts) -> Recorded:
    """Read the PMU record of a boot. Raises the errors of artefacts and of PMU records."""
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
    """Return benchmark -> the work of each sample that has some."""
    work: dict[str, list[int]] = defaultdict(list)
    for sample in samples:
        if sample.work is not None:
            work[sample.benchmark].append(sample.work)
    return dict(work)
