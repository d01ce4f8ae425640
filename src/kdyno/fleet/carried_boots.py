"""Boots on a fleet, as tasks of its queue."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from threading import Event, Lock

from kdyno.base.frozen import digest
from kdyno.boot.base import BootEnd
from kdyno.fleet.blobs import Blobs
from kdyno.fleet.carried_tasks import CarriedTasks
from kdyno.fleet.machine import FleetMachine
from kdyno.fleet.messages import BootResult, BootSpec
from kdyno.fleet.queue.model import EndedTask, Task
from kdyno.kernel.image import Image
from kdyno.kernel.images import RECORD as IMAGE_RECORD
from kdyno.measure.guest.agent import expected_records
from kdyno.measure.guest.counters import COUNTERS
from kdyno.measure.guest.pmu import RECORD
from kdyno.measure.guest.stream import AgentReport, read_stream
from kdyno.runs.carrier import BootsToCarry
from kdyno.runs.one_boot import BootRequest

MOST_IN_FLIGHT = 400
"""Each boot in flight is a thread of the client."""


class CarriedBoots:
    """Boots that a fleet carries out; see kdyno.runs.carrier.BootCarrier."""

    def __init__(self, blobs: Blobs, tasks: CarriedTasks, boots: BootsToCarry, machine: FleetMachine) -> None:
        self._blobs, self._tasks, self._name = blobs, tasks, boots.name
        self._crew, self._needs = machine.crew, machine.needs
        self._facts = digest(boots.about.facts)
        self._attempts: Counter[str] = boots.store.count_attempts(boots.boots)
        self._first = dict(self._attempts)
        self._settings = machine.settings
        self._of_block: dict[int, dict[str, BootRequest]] = defaultdict(dict)
        if self._crew.kind == "boot-wall":
            for key, request in boots.boots.items():
                self._of_block[request.block][key] = request
        self._image_records: dict[str, str] = {}
        self._numbering, self._uploading = Lock(), Lock()

    @property
    def in_flight(self) -> int:
        """Return the number of boots that keep the workers busy: in the wall lane whole blocks."""
        boots = 2 * self._crew.slots + 2
        if self._crew.kind == "boot-wall":
            variants = max(map(len, self._of_block.values()), default=1)
            boots = max(1, min(2 * self._crew.slots, MOST_IN_FLIGHT // variants)) * variants
        return min(boots, MOST_IN_FLIGHT)

    def boot(self, key: str, request: BootRequest, directory: Path, cancelled: Event) -> BootEnd:
        """Put a boot into the queue, unless it is there; wait for its end, and fetch its files."""
        with self._numbering:
            attempt = self._attempts[key]
            self._attempts[key] += 1
        name = (key, attempt)
        is_first = attempt == self._first.get(key, 0)
        together = self._of_block.get(request.block, {}) if is_first else {}
        tasks = [self._task(other, self._first.get(other, 0), one) for other, one in together.items()]
        ended = self._tasks.carry(name, tasks or [self._task(key, attempt, request)], cancelled)
        if ended is None:
            return _lost("interrupted", directory)
        if ended.result is None:
            return _lost(ended.reason, directory)
        return self._end(ended, request, directory)

    def _task(self, key: str, attempt: int, request: BootRequest) -> Task:
        spec = BootSpec(
            machine=self._settings,
            needs=self._needs,
            facts=self._facts,
            image=self._uploaded(request.image) if request.image else None,
            name=request.name,
            cmdline=request.cmdline,
            job=request.job,
            seed=request.seed,
            variant=request.variant,
            block=request.block,
            is_counted=request.is_counted,
        )
        is_wall = self._crew.kind == "boot-wall"
        return Task(
            key=key,
            attempt=attempt,
            run=self._name,
            kind=self._crew.kind,
            subject=request.image.record.key if request.image else f"{self._name}/{request.variant}",
            block=f"{self._name}/{request.block}" if is_wall else None,
            position=request.position,
            spec=spec.model_dump(mode="json"),
        )

    def _uploaded(self, image: Image) -> str:
        """Bring an image into the blob store, once; return the digest of its record."""
        key = image.record.key
        with self._uploading:
            if key not in self._image_records:
                for name, sha256 in image.record.files.items():
                    if not self._blobs.has(sha256):
                        self._blobs.put(image.directory / name)
                self._image_records[key] = self._blobs.put(image.directory / IMAGE_RECORD)
            return self._image_records[key]

    def _end(self, ended: EndedTask, request: BootRequest, directory: Path) -> BootEnd:
        result = BootResult.model_validate(ended.result)
        console = self._fetched(result.console, directory / "console.log")
        stream = self._fetched(result.stream, directory / "stream.jsonl")
        report = read_stream(stream, expected_records(request.order(directory).job))
        return BootEnd(
            status=result.status,
            reason=result.reason,
            seconds=result.seconds,
            ready_seconds=result.ready_seconds,
            command=result.command,
            console=console,
            stream=stream,
            report=report,
            pmu=self._fetched(result.pmu, directory / RECORD) if result.pmu else None,
            counters=self._fetched(result.counters, directory / COUNTERS) if result.counters else None,
            conditions=result.conditions,
            advice=result.advice,
            disturbance=result.disturbance,
            started=result.started,
            host=ended.host,
        )

    def _fetched(self, sha256: str | None, path: Path) -> Path:
        if sha256:
            self._blobs.get(sha256, path)
        return path


def _lost(reason: str, directory: Path) -> BootEnd:
    """Return the end of a boot that left no files."""
    return BootEnd("lost", reason, 0.0, None, (), directory / "console.log", directory / "stream.jsonl", AgentReport())
