"""One boot: the order for it, what goes on record of it, and a boot that no run asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from kdyno.instrument.job import ClangCounters, Counters, Job, MemoryCounters
from kdyno.instrument.steps import failure
from kdyno.kernel.image import Image
from kdyno.line.keys import boot_key
from kdyno.machine.base import BootEnd, BootOrder, Machine
from kdyno.measurement import Benchmark
from kdyno.profile.ir_profile import counters_range
from kdyno.state import State, disk_full_is_said
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import Boot
from kdyno.store.store import Store
from kdyno.talk import Talk
from kdyno.workload.base import NotRead, WorkloadSettings


@dataclass(frozen=True)
class Wanted:
    """One boot that is wanted, wherever it is done."""

    name: str
    """For people: `gcc-O2, block 3`."""
    image: Image | None
    """None where the machine needs none."""
    cmdline: tuple[str, ...]
    job: Job
    seed: int
    variant: str = ""
    block: int = 0
    is_counted: bool = True

    def order(self, directory: Path, cancelled: Event | None = None) -> BootOrder:
        """The machine's order; `directory` exists and is empty."""
        return BootOrder(
            name=self.name,
            kernel=self.image.bzimage if self.image else None,
            vmlinux=self.image.vmlinux if self.image else None,
            symbols=self.image.given_symbols if self.image else None,
            modules=self.image.modules if self.image else None,
            cmdline=self.cmdline,
            job=self.job.model_copy(update={"counters": self._counters()}),
            seed=self.seed,
            directory=directory,
            variant=self.variant,
            block=self.block,
            is_counted=self.is_counted,
            cancelled=cancelled or Event(),
        )

    def _counters(self) -> Counters | None:
        """What the agent is told of the kernel's counters. Raises NotInstrumented and OtherLayout."""
        asked = self.job.counters
        if not isinstance(asked, ClangCounters) or self.image is None:
            return asked
        addresses = counters_range(self.image.vmlinux)
        return MemoryCounters(address=addresses.start, bytes=len(addresses))


def measured(end: BootEnd, workload: WorkloadSettings) -> BootEnd:
    """The end of a boot with the benchmarks and samples that its workload makes of it; if it can't, the boot failed."""
    report = end.report.model_copy(update={"benchmarks": workload.described(end.report)})
    if end.status != "ok":
        return replace(end, report=report)
    try:
        return replace(end, report=workload.read(report, end.pmu))
    except NotRead as why:
        nothing = report.model_copy(update={"samples": ()})
        return replace(end, status="failed", reason=str(why), report=nothing, pmu=None)


def boot_record(key: str, seed: int, started: datetime, end: BootEnd, artefacts: Artefacts) -> Boot:
    """What goes on record of a boot; its files are kept as artefacts. Raises DiskFull."""
    with disk_full_is_said(artefacts.directory.parent):
        return Boot(
            key=key,
            seed=seed,
            status=end.status,
            reason=end.reason,
            started=started,
            seconds=end.seconds,
            ready_seconds=end.ready_seconds,
            conditions=end.conditions,
            kernel=end.report.hello.kernel if end.report.hello else None,
            command=end.command,
            console=artefacts.put(end.console) if end.console.exists() else None,
            stream=artefacts.put(end.stream) if end.stream.exists() else None,
            pmu=artefacts.put(end.pmu) if end.pmu else None,
            counters=artefacts.put(end.counters) if end.counters else None,
            samples=end.report.samples if end.status == "ok" else (),
            unsupported=end.report.unsupported,
            broken=end.report.broken,
        )


def boot_once(
    machine: Machine,
    wanted: Wanted,
    usable: Callable[[Boot], bool],
    *,
    state: State,
    store: Store,
    talk: Talk,
    workload: WorkloadSettings | None = None,
) -> tuple[Boot, list[Benchmark]]:
    """The boot that is on record, if it is `usable`, or one done now and put on record; with what it describes.

    In the model lane, where the same boot again leaves the same files: what was lost of them is so brought back.
    Without a `workload` its samples are those that the agent said.
    """
    image = wanted.image.record.key if wanted.image else machine.stand_in(wanted.variant, wanted.block)
    reading = workload.reading() if workload else {}
    key = boot_key(
        image, wanted.cmdline, wanted.job, machine.describe(), seed=wanted.seed, replicate={}, reading=reading
    )
    with state.lock(f"boot-{key[:24]}", on_wait=lambda: talk.say("another kdyno does the same boot: waiting for it")):
        on_record = store.boot(key)
        if on_record and usable(on_record[0]):
            return on_record
        talk.say(f"booting {wanted.name}")
        with state.scratch("once") as scratch:
            started = datetime.now(UTC)
            end = machine.boot(wanted.order(scratch))
            if workload:
                end = measured(end, workload)
            elif end.status == "ok" and (why := failure(end.report.steps)):
                end = replace(end, status="failed", reason=why)
            boot = boot_record(key, wanted.seed, started, end, Artefacts(state.artefacts))
        store.add_boot(boot, end.report.benchmarks)
        return boot, list(end.report.benchmarks)
