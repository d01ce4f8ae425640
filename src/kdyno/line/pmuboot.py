"""One boot of one image with the emulated PMU, for its record: what explanations and profiles start from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kdyno.instrument.agent import test_orders
from kdyno.instrument.job import Job
from kdyno.instrument.pmu import Events, PmuConfig
from kdyno.kernel.image import Image
from kdyno.lanes import LANES
from kdyno.line.boot_file import boot_for_file
from kdyno.line.boot_once import Wanted
from kdyno.machine.base import Description, Machine, MachineSettings
from kdyno.machine.qemu_config import QemuConfig
from kdyno.machine.registry import open_machine
from kdyno.state import State
from kdyno.store.records import Boot
from kdyno.store.store import Store
from kdyno.talk import Talk


@dataclass(frozen=True)
class PmuRun:
    """What a boot left: its PMU record, and what the numbers of the record's regions stand for."""

    record: Path
    benchmarks: tuple[str, ...]
    """Names by the index of their region."""
    work: dict[str, list[int]]
    """By benchmark: operations, or bytes, of each iteration."""


def pmu_machine(events: Events, family: str, settings: MachineSettings | None = None) -> Machine:
    """The machine of such a boot; `settings` are those of a run's machine. Raises NotEmulated."""
    pmu = PmuConfig(events=events, family=family, clock="instructions")
    return open_machine((settings or QemuConfig()).counting(pmu))


def pmu_job(about: Description, tests: Sequence[str], params: Mapping[str, Mapping[str, int]]) -> Job:
    """The job of such a boot. Raises UnknownTest and UnknownParameter."""
    return about.job(LANES[about.lane].iterations, tests=test_orders(tests, params))


def pmu_boot(
    image: Image,
    tests: Sequence[str],
    *,
    seed: int,
    events: Events,
    family: str,
    state: State,
    store: Store,
    talk: Talk,
    params: Mapping[str, Mapping[str, int]] | None = None,
    cmdline: tuple[str, ...] = (),
    settings: MachineSettings | None = None,
) -> PmuRun:
    """Boot an image once in the model lane and count; a boot that is on record isn't done again.

    `settings` are those of a run's machine. Raises BootForFileFailed, which names the console, and what machine, agent
    and store raise.
    """
    machine = pmu_machine(events, family, settings)
    name = f"image {image.record.key[:12]}"
    machine.require_cpu(image.record.needs, name)
    job = pmu_job(machine.describe(), tests, params or {})
    wanted = Wanted(f"{name} with the emulated PMU", image, cmdline, job, seed)
    record, boot, benchmarks = boot_for_file(machine, wanted, "pmu", state=state, store=store, talk=talk)
    return PmuRun(record, tuple(benchmark.name for benchmark in benchmarks), _work(boot))


def _work(boot: Boot) -> dict[str, list[int]]:
    work: dict[str, list[int]] = defaultdict(list)
    for sample in sorted(boot.samples, key=lambda sample: sample.iteration):
        if sample.work is not None:
            work[sample.benchmark].append(sample.work)
    return dict(work)
