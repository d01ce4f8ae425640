"""A store with runs of many kernels, as a history reads it."""

from __future__ import annotations

from collections.abc import Callable, Container
from datetime import timedelta
from pathlib import Path
from typing import Any

from kdyno.base.lanes import LaneName
from kdyno.base.measurement import Benchmark, Sample
from kdyno.kernel.image import SourceIdentity
from kdyno.store.records import BootRecord, RunRecord
from kdyno.store.store import Store
from tests.unit import specimen

REPOSITORY = "/home/me/linux"
WORK = 1000
VARIANTS = ("gcc-12", "clang-19-thinlto")
Cost = Callable[[int, str, str, int], float]
"""Kernel, variant, benchmark, block -> instructions or nanoseconds."""


def commit(kernel: int) -> str:
    return f"{kernel:02x}" * 20


def source(kernel: int) -> SourceIdentity:
    sha = commit(kernel)
    return SourceIdentity(
        spec=f"git:{REPOSITORY}#{sha[:12]}",
        identity=f"git:{sha}",
        version="6.13.0-rc1",
        origin=f"v6.13-rc1-{kernel}-g{sha[:12]}",
    )


def benchmark(name: str, lane: LaneName = "model") -> Benchmark:
    unit = {"model": "instr", "wall": "ns"}[lane]
    return Benchmark(name=name, test=name.partition(".")[0], unit=unit, direction="lower", description=f"the {name}")


def run_of_kernel(kernel: int, lane: LaneName = "model", blocks: int = 2, **changes: Any) -> RunRecord:
    run = specimen.run_record(blocks=blocks, lane=lane, variants=VARIANTS)
    variants = tuple(
        variant.model_copy(
            update={"images": tuple(image.model_copy(update={"source": source(kernel)}) for image in variant.images)}
        )
        for variant in run.variants
    )
    fields = {
        "id": f"{kernel:012x}",
        "created": specimen.NOON + timedelta(days=kernel),
        "experiment": '{"workload": {"tests": ["lmbench"]}}',
        "variants": variants,
    }
    return run.model_copy(update=fields | changes)


def add_run(store: Store, run: RunRecord, kernel: int, names: list[str], cost: Cost) -> None:
    benchmarks = [benchmark(name, run.lane) for name in names]
    boots = [
        BootRecord(
            key=f"{run.id}, {variant.name}, {block}",
            variant=variant.name,
            block=block,
            position=block * len(run.variants) + ordinal,
            seed=1000 + block,
            status="ok",
            started=run.created,
            seconds=9.0,
            samples=tuple(
                Sample(
                    benchmark=name,
                    iteration=0,
                    elapsed=round(1000 * cost(kernel, variant.name, name, block)),
                    work=1000,
                )
                for name in names
            ),
        )
        for block in range(run.blocks)
        for ordinal, variant in enumerate(run.variants)
    ]
    store.begin(run, specimen.placed_keys(boots))
    for boot in boots:
        store.add_boot(boot, benchmarks)


def fill(
    path: Path,
    kernels: int,
    names: list[str],
    cost: Cost,
    lane: LaneName = "model",
    kernels_left_out: Container[int] = (),
) -> Store:
    """A store with a run of each kernel; the newest is recorded first."""
    store = Store(f"sqlite:///{path}")
    for kernel in reversed(range(kernels)):
        if kernel in kernels_left_out:
            continue
        add_run(store, run_of_kernel(kernel, lane), kernel, names, cost)
    return store
