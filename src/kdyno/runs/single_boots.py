"""Boots outside of runs, for profiles, explanations and link orders. Each is carried out once."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kdyno.base.errors import InfrastructureError, KdynoError, UserError
from kdyno.base.files import require_writable
from kdyno.base.lanes import LANES
from kdyno.base.measurement import Benchmark
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import Description, MachineBackend, MachineSettings
from kdyno.boot.registry import default_machine, open_machine
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Training
from kdyno.measure.guest.agent import test_orders
from kdyno.measure.guest.job import Counters, Job
from kdyno.measure.guest.pmu import Events, PmuConfig
from kdyno.measure.guest.steps import failure
from kdyno.measure.paths.table import path_orders
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.measure.workload.needs import Load, Needs
from kdyno.runs.keys import boot_key
from kdyno.runs.one_boot import BootRequest, attach_samples, boot_record
from kdyno.runs.session import Session
from kdyno.store.records import Boot

if TYPE_CHECKING:
    from kdyno.measure.guest.pmu_record import PmuRecord

Kind = Literal["pmu", "counters"]
"""A field of Boot: the file that a boot writes."""
TRAINING_FAMILY = PmuConfig().family
"""The CPU family that is modelled in training: the same for all, so that an input doesn't depend on the experiment."""
MORE = 10
"""The factor of iterations if the kernel counts: the code around the loop of a benchmark is counted, too."""


class BootForFileFailed(InfrastructureError):
    message = "the boot of {name} failed: {reason}"
    hint = "see its console, {console}; or start it with `kdyno boot {image} --lane model`"


class BootForFileLost(BootForFileFailed):
    """The host failed. The kernel may be good."""

    message = "the boot of {name} was lost: {reason}"


class CountsNoPrograms(UserError):
    message = 'use = ["pgo"] cannot be trained on {loads}: counters are read after the agent\'s tests'
    hint = "train on tests (`general`), or use autofdo, for which the emulated PMU counts"


@dataclass(frozen=True)
class PmuRun:
    """The PMU record of a boot, and the benchmarks that the numbers of its regions represent."""

    record: Path
    benchmarks: tuple[str, ...]
    """The names by the index of the region."""
    work: dict[str, list[int]]
    """By benchmark, the operations or bytes of each iteration."""


class SingleBoots:
    """Boots in the model lane, where a repeated boot writes the same files: a boot on record is not repeated.

    All methods raise what machine, agent and store raise.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def once(
        self,
        machine: MachineBackend,
        request: BootRequest,
        is_usable: Callable[[Boot], bool],
        workload: WorkloadSettings | None = None,
    ) -> tuple[Boot, list[Benchmark]]:
        """Return the boot on record if it `is_usable`, or carry it out and record it; with its benchmarks.

        This restores lost files of a boot. Without a `workload` its samples are those that the agent reports.
        """
        state, store, talk = self.session.state, self.session.store, self.session.talk
        image = request.image.record.key if request.image else machine.stand_in(request.variant, request.block)
        reading = workload.reading() if workload else {}
        key = boot_key(
            image, request.cmdline, request.job, machine.describe(), seed=request.seed, replicate={}, reading=reading
        )
        with state.lock(
            f"boot-{key[:24]}", on_wait=lambda: talk.say("another kdyno does the same boot: waiting for it")
        ):
            recorded_boot = store.boot(key)
            if recorded_boot and is_usable(recorded_boot[0]):
                return recorded_boot
            talk.say(f"booting {request.name}")
            with state.scratch("once") as scratch:
                start_time = datetime.now(UTC)
                end = machine.boot(request.order(scratch))
                if workload:
                    end = attach_samples(end, workload)
                elif end.status == "ok" and (reason := failure(end.report.steps)):
                    end = replace(end, status="failed", reason=reason)
                boot = boot_record(key, request.seed, start_time, end, self.session.artefacts)
            store.add_boot(boot, end.report.benchmarks)
            return boot, list(end.report.benchmarks)

    def for_file(
        self, machine: MachineBackend, request: BootRequest, kind: Kind, workload: WorkloadSettings | None = None
    ) -> tuple[Path, Boot, list[Benchmark]]:
        """Return the file of this boot, the boot, and its benchmarks.

        A boot on record is repeated if its file is missing or if it failed: the host may have been too slow. `workload`
        reads the samples if the agent doesn't report them. Raises BootForFileFailed, which names the console, and its
        subclass BootForFileLost if the host failed.
        """
        artefacts = self.session.artefacts

        def is_there(boot: Boot) -> bool:
            try:
                return bool(boot.status == "ok" and (digest := getattr(boot, kind)) and artefacts.get(digest))
            except KdynoError:
                return False

        boot, benchmarks = self.once(machine, request, is_there, workload)
        if boot.status == "ok" and getattr(boot, kind) is not None:
            return artefacts.get(getattr(boot, kind)), boot, benchmarks
        error = BootForFileLost if boot.status == "lost" else BootForFileFailed
        console = artefacts.get(boot.console) if boot.console else "empty"
        image = request.image.record.key[:12] if request.image else "KERNEL"
        raise error(name=request.name, image=image, reason=boot.reason, console=console)

    def count(
        self,
        image: Image,
        load: Load,
        *,
        seed: int,
        events: Events,
        family: str,
        cmdline: tuple[str, ...] = (),
        settings: MachineSettings | None = None,
    ) -> PmuRun:
        """Boot an image with the emulated PMU. `settings` are those of a run's machine. Raises BootForFileFailed."""
        machine = pmu_machine(events, family, load, state=self.session.state, talk=self.session.talk, settings=settings)
        name = f"image {image.record.key[:12]}"
        machine.require_cpu(image.record.needs, name)
        job = pmu_job(machine.describe(), load)
        request = BootRequest(f"{name} with the emulated PMU", image, cmdline, job, seed)
        record, boot, benchmarks = self.for_file(machine, request, "pmu")
        return PmuRun(record, tuple(benchmark.name for benchmark in benchmarks), _work(boot))

    def record(
        self,
        image: Image,
        load: Load,
        out: Path,
        *,
        seed: int,
        events: Events,
        family: str,
        cmdline: tuple[str, ...] = (),
    ) -> PmuRecord:
        """Boot an image with the emulated PMU, and write its record to `out`. Raises BootForFileFailed."""
        from kdyno.measure.guest.pmu_record import read_pmu_record, with_benchmarks

        require_writable(out)
        run = self.count(image, load, seed=seed, events=events, family=family, cmdline=cmdline)
        with_benchmarks(run.record, run.benchmarks, out)
        return read_pmu_record(out)

    def train(self, image: Image, training: Training, counts: Events | Counters, out: Path, *, seed: int) -> None:
        """Boot an image for training, and write the counts to `out`. Raises BootForFileFailed."""
        if isinstance(counts, str):
            self.record(
                image,
                training.load,
                out,
                seed=seed,
                events=counts,
                family=TRAINING_FAMILY,
                cmdline=training.recipe.words,
            )
            return
        machine = training_machine(counts, training.load, self.session.state, self.session.talk)
        job = training_job(machine.describe(), training, counts)
        name = f"image {image.record.key[:12]}, which counts by itself"
        counters, *_ = self.for_file(machine, BootRequest(name, image, training.recipe.words, job, seed), "counters")
        shutil.copyfile(counters, out)


def open_equipped_machine(settings: MachineSettings, needs: Needs, state: State, talk: Talk) -> MachineBackend:
    """Open a machine that meets the needs. Raises what making a root file system raises."""
    machine = open_machine(settings.at_least(needs))
    machine.provide(needs, state, talk)
    return machine


def pmu_machine(
    events: Events, family: str, load: Load, *, state: State, talk: Talk, settings: MachineSettings | None = None
) -> MachineBackend:
    """Open the machine of a boot that counts; `settings` are those of a run's machine. Raises NotEmulated."""
    pmu = PmuConfig(events=events, family=family, clock="instructions")
    return open_equipped_machine((settings or default_machine(load.runner)).with_pmu(pmu), load, state, talk)


def pmu_job(about: Description, load: Load) -> Job:
    """Return the job of a boot that counts. Raises UnknownTest, UnknownParameter and UnknownPath."""
    if load.runner == "kernel":
        tests = path_orders(load.tests)
    else:
        tests = test_orders(load.tests, load.params) if load.tests else ()
    return about.job(LANES[about.lane].iterations, tests=tests, programs=load.programs)


def training_machine(counts: Events | Counters, load: Load, state: State, talk: Talk) -> MachineBackend:
    """Open a machine in the model lane, where a repeated boot counts the same. Raises CountsNoPrograms."""
    if isinstance(counts, str):
        return pmu_machine(counts, TRAINING_FAMILY, load, state=state, talk=talk)
    if load.programs or load.runner != "agent":
        programs = f"programs ({', '.join(program.name for program in load.programs)})"
        raise CountsNoPrograms(loads=programs if load.programs else "paths")
    return open_machine(default_machine())


def training_job(about: Description, training: Training, counts: Events | Counters) -> Job:
    """Return the job of a boot for training. Raises UnknownTest and UnknownParameter."""
    job = pmu_job(about, training.load)
    if isinstance(counts, str):
        return job
    return job.model_copy(update={"counters": counts, "iterations": MORE * job.iterations})


def _work(boot: Boot) -> dict[str, list[int]]:
    work: dict[str, list[int]] = defaultdict(list)
    for sample in sorted(boot.samples, key=lambda sample: sample.iteration):
        if sample.work is not None:
            work[sample.benchmark].append(sample.work)
    return dict(work)
