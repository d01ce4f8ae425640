"""One boot: its order, its samples, and its record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Event

from kdyno.base.state import translate_disk_full
from kdyno.boot.base import BootEnd, BootOrder
from kdyno.kernel.image import Image
from kdyno.measure.guest.job import ClangCounters, Counters, Job, MemoryCounters
from kdyno.measure.workload.base import NotRead, WorkloadSettings
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import Boot


@dataclass(frozen=True)
class BootRequest:
    """A request for one boot, independent of the machine."""

    name: str
    """The name in messages: `gcc-O2, block 3`."""
    image: Image | None
    """None if the machine boots without an image."""
    cmdline: tuple[str, ...]
    job: Job
    seed: int
    variant: str = ""
    block: int = 0
    position: int = 0
    """Its place in the order of all boots of the run."""
    is_counted: bool = True

    def order(self, directory: Path, cancelled: Event | None = None) -> BootOrder:
        """Return the order for the machine; `directory` exists and is empty."""
        return BootOrder(
            name=self.name,
            kernel=self.image.program if self.image else None,
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
        """Return the counters that the agent reads. Raises NotInstrumented and OtherLayout."""
        requested = self.job.counters
        if not isinstance(requested, ClangCounters) or self.image is None:
            return requested
        from kdyno.profile.ir_profile import counters_range

        addresses = counters_range(self.image.vmlinux)
        return MemoryCounters(address=addresses.start, bytes=len(addresses))


def attach_samples(end: BootEnd, workload: WorkloadSettings) -> BootEnd:
    """Return the end of a boot with the benchmarks and samples that the workload reads from it.

    The boot has failed if the workload can't read them.
    """
    report = end.report.model_copy(update={"benchmarks": workload.describe_benchmarks(end.report)})
    if end.status != "ok":
        return replace(end, report=report)
    try:
        return replace(end, report=workload.read(report, end.pmu))
    except NotRead as error:
        without_samples = report.model_copy(update={"samples": ()})
        return replace(end, status="failed", reason=str(error), report=without_samples, pmu=None)


def boot_record(key: str, seed: int, started: datetime, end: BootEnd, artefacts: Artefacts) -> Boot:
    """Return the record of a boot, and keep its files as artefacts. Raises DiskFull."""
    with translate_disk_full(artefacts.directory.parent):
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
            host=end.host,
            console=artefacts.put(end.console) if end.console.exists() else None,
            stream=artefacts.put(end.stream) if end.stream.exists() else None,
            pmu=artefacts.put(end.pmu) if end.pmu else None,
            counters=artefacts.put(end.counters) if end.counters else None,
            samples=end.report.samples if end.status == "ok" else (),
            unsupported=end.report.unsupported,
            broken=end.report.broken,
        )
