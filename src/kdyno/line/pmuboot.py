"""One boot of one image with the emulated PMU, for its record: what explanations and profiles start from."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from kdyno.instrument.agent import test_orders
from kdyno.instrument.job import Job, Load
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


def pmu_machine(
    events: Events, family: str, load: Load, *, state: State, talk: Talk, settings: MachineSettings | None = None
) -> Machine:
    """The machine of such a boot; `settings` are those of a run's machine. Raises NotEmulated, and what making a root
    file system raises.
    """
    pmu = PmuConfig(events=events, family=family, clock="instructions")
    return equipped((settings or QemuConfig()).counting(pmu), load, state, talk)


def equipped(settings: MachineSettings, load: Load, state: State, talk: Talk) -> Machine:
    """A machine that has what the load needs."""
    machine = open_machine(settings.suited(load.memory_mb, 1))
    if load.packages:
        machine.provide(load.packages, load.unpack, state, talk)
    return machine


def pmu_job(about: Description, load: Load) -> Job:
    """The job of such a boot. Raises UnknownTest and UnknownParameter."""
    tests = test_orders(load.tests, load.params) if load.tests else ()
    return about.job(LANES[about.lane].iterations, tests=tests, programs=load.programs)


def pmu_boot(
    image: Image,
    load: Load,
    *,
    seed: int,
    events: Events,
    family: str,
    state: State,
    store: Store,
    talk: Talk,
    cmdline: tuple[str, ...] = (),
    settings: MachineSettings | None = None,
) -> PmuRun:
    """Boot an image once in the model lane and count; a boot that is on record isn't done again.

    `settings` are those of a run's machine. Raises BootForFileFailed, which names the console, and what machine, agent
    and store raise.
    """
    machine = pmu_machine(events, family, load, state=state, talk=talk, settings=settings)
    name = f"image {image.record.key[:12]}"
    machine.require_cpu(image.record.needs, name)
    job = pmu_job(machine.describe(), load)
    wanted = Wanted(f"{name} with the emulated PMU", image, cmdline, job, seed)
    record, boot, benchmarks = boot_for_file(machine, wanted, "pmu", state=state, store=store, talk=talk)
    return PmuRun(record, tuple(benchmark.name for benchmark in benchmarks), _work(boot))


def _work(boot: Boot) -> dict[str, list[int]]:
    work: dict[str, list[int]] = defaultdict(list)
    for sample in sorted(boot.samples, key=lambda sample: sample.iteration):
        if sample.work is not None:
            work[sample.benchmark].append(sample.work)
    return dict(work)
