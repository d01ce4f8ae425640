"""Carries out one boot of a fleet on this host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock

from kdyno.base.errors import KdynoError
from kdyno.base.frozen import digest
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.base.threads import ThreadCall
from kdyno.boot.base import BootEnd, Description, HoldsBox, MachineBackend, MachineSettings
from kdyno.boot.registry import open_machine
from kdyno.fleet.blobs import Blobs
from kdyno.fleet.messages import BootResult, BootSpec, MachineAnswer, MachineQuestion
from kdyno.kernel.image import Image
from kdyno.kernel.images import RECORD, read_record, receive_image
from kdyno.measure.workload.needs import Needs
from kdyno.runs.one_boot import BootRequest


class CannotCarryOut(Exception):
    """This host can't carry out a task; another one may. Its text is the reason."""


@dataclass
class _OpenMachine:
    machine: MachineBackend
    about: Description
    boots: int = 0
    """The boots that are under way."""
    used: float = field(default_factory=time.monotonic)
    """When the last of them ended."""


class Machines:
    """The machines that this host has opened, each with what its guests share, and its description."""

    def __init__(self, state: State, talk: Talk) -> None:
        self._state, self._talk = state, talk
        self._opened: dict[str, _OpenMachine] = {}
        self._lock = Lock()

    def find(self, settings: MachineSettings, needs: Needs) -> tuple[MachineBackend, Description]:
        """Return the machine, equipped, and its description. Raises CannotCarryOut."""
        with self._lock:
            one = self._find(settings, needs)
            return one.machine, one.about

    @contextmanager
    def using(self, settings: MachineSettings, needs: Needs) -> Iterator[tuple[MachineBackend, Description]]:
        """Yield what `find` returns, for a boot. Raises CannotCarryOut."""
        with self._lock:
            one = self._find(settings, needs)
            one.boots += 1
        try:
            yield one.machine, one.about
        finally:
            with self._lock:
                one.boots -= 1
                one.used = time.monotonic()

    def let_boxes_go(self, after_seconds: float) -> list[ThreadCall[None]]:
        """Begin to give back the boxes that nothing was booted on for so long. The next run looks at them anew."""
        deadline = time.monotonic() - after_seconds
        with self._lock:
            idle = {
                name: one.machine
                for name, one in self._opened.items()
                if isinstance(one.machine, HoldsBox) and not one.boots and one.used <= deadline
            }
            for name in idle:
                del self._opened[name]
        return [ThreadCall(box.let_go) for box in idle.values()]

    def _find(self, settings: MachineSettings, needs: Needs) -> _OpenMachine:
        name = f"{settings.model_dump_json()} {needs.model_dump_json()}"
        if name not in self._opened:
            try:
                machine = open_machine(settings)
                machine.provide(needs, self._state, self._talk)
                self._opened[name] = _OpenMachine(machine, machine.describe())
            except KdynoError as error:
                raise CannotCarryOut(str(error)) from error
        return self._opened[name]

    def answer(self, question: MachineQuestion) -> MachineAnswer:
        """Return the description of a machine on this host, or why it has none."""
        try:
            machine, about = self.find(question.machine, question.needs)
        except CannotCarryOut as refusal:
            return MachineAnswer(refusal=str(refusal))
        cpu, lacks = None, ""
        try:
            cpu = machine.cpu()
            machine.require_cpu(question.flags, "the kernel")
        except KdynoError as error:
            lacks = str(error.facts.get("missing", error))
        return MachineAnswer.of(about, cpu, lacks)


def carry_boot(spec: BootSpec, machines: Machines, state: State, blobs: Blobs, cancelled: Event) -> BootResult:
    """Boot, and keep the files of the boot in the blob store.

    Raises CannotCarryOut, ImageCorrupt, and what the blob store raises.
    """
    with machines.using(spec.machine, spec.needs) as (machine, about):
        if digest(about.facts) != spec.facts:
            raise CannotCarryOut("its machine describes itself differently from the one that the run was planned for")
        return _boot(spec, machine, state, blobs, cancelled)


def _boot(spec: BootSpec, machine: MachineBackend, state: State, blobs: Blobs, cancelled: Event) -> BootResult:
    image = _image(spec.image, state, blobs) if spec.image else None
    request = BootRequest(
        name=spec.name,
        image=image,
        cmdline=spec.cmdline,
        job=spec.job,
        seed=spec.seed,
        variant=spec.variant,
        block=spec.block,
        is_counted=spec.is_counted,
    )
    with state.scratch("fleet") as place:
        started = datetime.now(UTC)
        try:
            end = machine.boot(request.order(place, cancelled))
        except KdynoError as error:
            raise CannotCarryOut(str(error)) from error
        return _result(end, started, blobs.put)


def _image(record_digest: str, state: State, blobs: Blobs) -> Image:
    """Return an image by the digest of its record, and bring it here if it isn't. Raises CannotCarryOut."""
    with state.scratch("image") as place:
        blobs.get(record_digest, place / RECORD)
        record = read_record(place)
    return receive_image(record, blobs.get, state)


def _result(end: BootEnd, started: datetime, keep: Callable[[Path], str]) -> BootResult:
    def kept(path: Path | None) -> str | None:
        return keep(path) if path and path.exists() else None

    return BootResult(
        status=end.status,
        reason=end.reason,
        started=started,
        seconds=end.seconds,
        ready_seconds=end.ready_seconds,
        command=end.command,
        conditions=end.conditions,
        advice=end.advice,
        disturbance=end.disturbance,
        console=kept(end.console),
        stream=kept(end.stream),
        pmu=kept(end.pmu),
        counters=kept(end.counters),
    )
