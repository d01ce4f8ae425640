"""Boots outside of runs, for profiles, explanations and link orders. Each is carried out once."""

from __future__ import annotations

import shutil
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Literal

from kdyno.base.errors import InfrastructureError, KdynoError, UserError
from kdyno.base.files import require_writable
from kdyno.base.frozen import digest
from kdyno.base.lanes import LANES
from kdyno.base.measurement import Benchmark
from kdyno.base.state import State
from kdyno.base.stop_signals import stops_set
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, Description, MachineBackend, MachineSettings
from kdyno.boot.registry import OpenMachine, default_machine, open_machine
from kdyno.kernel.boot_tests import disable_boot_tests
from kdyno.kernel.image import Image
from kdyno.kernel.images import configuration_of
from kdyno.kernel.recipe import Training
from kdyno.measure.guest.agent import test_orders
from kdyno.measure.guest.job import Counters, Job
from kdyno.measure.guest.pmu import Events, PmuConfig
from kdyno.measure.guest.steps import failure
from kdyno.measure.paths.table import path_orders
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.measure.workload.needs import Load, Needs
from kdyno.runs.carrier import BootsToCarry
from kdyno.runs.keys import boot_key
from kdyno.runs.one_boot import BootRequest, attach_samples, boot_record
from kdyno.runs.session import Session
from kdyno.runs.side_by_side import SideBySide
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


Read = Callable[[BootEnd], BootEnd]
"""Puts samples into the end of a boot, or makes it a failed one."""


def boot_once(
    requests: Mapping[str, BootRequest],
    machine: MachineBackend,
    session: Session,
    *,
    is_usable: Callable[[Boot], bool] = lambda _: True,
    read: Read = lambda end: end,
) -> dict[str, tuple[Boot, list[Benchmark]]]:
    """Return the boot on record of each key if it `is_usable`, or carry it out and record it; with its benchmarks.

    Boots run side by side, on what carries out the session's boots. This restores lost files of a boot. Raises what
    machine, agent and store raise.
    """
    recorded: dict[str, tuple[Boot, list[Benchmark]]] = {}
    with ExitStack() as locks:
        for key in sorted(requests):
            wait = partial(session.talk.say, f"another kdyno does the same boot, {requests[key].name}: waiting for it")
            locks.enter_context(session.state.lock(f"boot-{key[:24]}", on_wait=wait))
            if (on_record := session.store.boot(key)) and is_usable(on_record[0]):
                recorded[key] = on_record
        missing = {key: request for key, request in requests.items() if key not in recorded}
        if missing:
            recorded |= _boot_all(missing, machine, session, read)
    return {key: recorded[key] for key in requests}


def _boot_all(
    requests: Mapping[str, BootRequest], machine: MachineBackend, session: Session, read: Read
) -> dict[str, tuple[Boot, list[Benchmark]]]:
    recorded: dict[str, tuple[Boot, list[Benchmark]]] = {}
    waiting, cancelled = deque(requests.items()), Event()

    def take_next() -> tuple[str, BootRequest] | None:
        if not waiting:
            return None
        session.talk.say(f"booting {waiting[0][1].name}")
        return waiting.popleft()

    name = f"boots-{digest(sorted(requests))[:12]}"
    to_carry = BootsToCarry(name, requests, machine, machine.describe(), session.store, session.talk)
    with (
        stops_set(cancelled),
        session.state.scratch("once") as place,
        session.carrier.carrying_boots(to_carry) as carrier,
        SideBySide(carrier, place, cancelled) as boots,
    ):
        for ended in boots.boot_all(take_next):
            end = read(ended.end)
            boot = boot_record(ended.key, ended.request.seed, ended.started, end, session.artefacts)
            session.store.add_boot(boot, end.report.benchmarks)
            recorded[ended.key] = boot, list(end.report.benchmarks)
    return recorded


class SingleBoots:
    """Boots in the model lane, where a repeated boot writes the same files: a boot on record is not repeated.

    All methods raise what machine, agent and store raise.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def for_files(
        self,
        machine: MachineBackend,
        requests: Sequence[BootRequest],
        kind: Kind,
        workload: WorkloadSettings | None = None,
    ) -> list[tuple[Path, Boot, list[Benchmark]]]:
        """Return the file of each of these boots, the boot, and its benchmarks.

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

        about, reading = machine.describe(), workload.reading() if workload else {}
        keys = [
            boot_key(
                request.image.record.key if request.image else machine.stand_in(request.variant, request.block),
                request.cmdline,
                request.job,
                about,
                seed=request.seed,
                replicate={},
                reading=reading,
            )
            for request in requests
        ]
        read = partial(attach_samples, workload=workload) if workload else _with_its_own_samples
        by_key = dict(zip(keys, requests, strict=True))
        recorded = boot_once(by_key, machine, self.session, is_usable=is_there, read=read)
        return [(self._file(by_key[key], recorded[key][0], kind), *recorded[key]) for key in keys]

    def _file(self, request: BootRequest, boot: Boot, kind: Kind) -> Path:
        artefacts = self.session.artefacts
        if boot.status == "ok" and getattr(boot, kind) is not None:
            return artefacts.get(getattr(boot, kind))
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
        """Boot an image with the emulated PMU, without the tests that its kernel has of itself. `settings` are those of
        a run's machine. Raises BootForFileFailed.
        """
        machine = pmu_machine(events, family, load, state=self.session.state, talk=self.session.talk, settings=settings)
        name = f"image {image.record.key[:12]}"
        machine.require_cpu(image.record.needs, name)
        job = pmu_job(machine.describe(), load)
        words = disable_boot_tests(cmdline, configuration_of(image))
        request = BootRequest(f"{name} with the emulated PMU", image, words, job, seed)
        [(record, boot, benchmarks)] = self.for_files(machine, [request], "pmu")
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

    def train(
        self, image: Image, training: Training, counts: Events | Counters, place: Path, *, cmdline: tuple[str, ...]
    ) -> list[Path]:
        """Boot an image for training, once for each seed; return the files of the counts, in this directory. Raises
        BootForFileFailed.
        """
        from kdyno.measure.guest.pmu_record import with_benchmarks

        machine = training_machine(
            counts, training.load, self.session.state, self.session.talk, self.session.carrier.open_machine
        )
        image_name = f"image {image.record.key[:12]}"
        machine.require_cpu(image.record.needs, image_name)
        is_counted_outside = isinstance(counts, str)
        how = "with the emulated PMU" if is_counted_outside else "which counts by itself"
        job = training_job(machine.describe(), training, counts)
        requests = [
            BootRequest(f"{image_name}, {how}, seed {seed}", image, cmdline, job, seed, block=number)
            for number, seed in enumerate(training.seeds)
        ]
        files = []
        for file, boot, benchmarks in self.for_files(machine, requests, "pmu" if is_counted_outside else "counters"):
            files.append(place / str(boot.seed))
            if is_counted_outside:
                with_benchmarks(file, tuple(benchmark.name for benchmark in benchmarks), files[-1])
            else:
                shutil.copyfile(file, files[-1])
        return files


def _with_its_own_samples(end: BootEnd) -> BootEnd:
    """Return the end of a boot whose agent reports the samples; failed if a program has."""
    if end.status == "ok" and (reason := failure(end.report.steps)):
        return replace(end, status="failed", reason=reason)
    return end


def open_equipped_machine(
    settings: MachineSettings, needs: Needs, state: State, talk: Talk, open_it: OpenMachine = open_machine
) -> MachineBackend:
    """Open a machine that meets the needs. Raises what making a root file system raises."""
    machine = open_it(settings.at_least(needs))
    machine.provide(needs, state, talk)
    return machine


def pmu_machine(
    events: Events,
    family: str,
    load: Load,
    *,
    state: State,
    talk: Talk,
    settings: MachineSettings | None = None,
    open_it: OpenMachine = open_machine,
) -> MachineBackend:
    """Open the machine of a boot that counts; `settings` are those of a run's machine. Raises NotEmulated."""
    pmu = PmuConfig(events=events, family=family, clock="instructions")
    return open_equipped_machine((settings or default_machine(load.runner)).with_pmu(pmu), load, state, talk, open_it)


def pmu_job(about: Description, load: Load) -> Job:
    """Return the job of a boot that counts. Raises UnknownTest, UnknownParameter and UnknownPath."""
    if load.runner == "kernel":
        tests = path_orders(load.tests)
    else:
        tests = test_orders(load.tests, load.params) if load.tests else ()
    return about.job(LANES[about.lane].iterations, tests=tests, programs=load.programs)


def training_machine(
    counts: Events | Counters, load: Load, state: State, talk: Talk, open_it: OpenMachine
) -> MachineBackend:
    """Open a machine in the model lane, where a repeated boot counts the same. Raises CountsNoPrograms."""
    if isinstance(counts, str):
        return pmu_machine(counts, TRAINING_FAMILY, load, state=state, talk=talk, open_it=open_it)
    if load.programs or load.runner != "agent":
        programs = f"programs ({', '.join(program.name for program in load.programs)})"
        raise CountsNoPrograms(loads=programs if load.programs else "paths")
    return open_equipped_machine(default_machine(), Needs(), state, talk, open_it)


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
