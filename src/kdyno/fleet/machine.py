"""The machine of a run on a fleet: it is described by workers that are alike, and asks one of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kdyno.base.cpu import Cpu, NoCpuinfo
from kdyno.base.lanes import LANES
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, BootOrder, CpuLacks, Description, MachineSettings, NoShell
from kdyno.boot.platforms import Output
from kdyno.boot.registry import open_machine
from kdyno.fleet.errors import NobodyOffers
from kdyno.fleet.messages import MachineAnswer, MachineQuestion
from kdyno.fleet.package_digest import this_kdyno
from kdyno.fleet.queue.model import HostCheck, Kind, Worker
from kdyno.measure.workload.needs import Needs

VARIES = "memory_mb"
"""A fact of a host that differs between boxes of one kind: what the firmware keeps."""
Ask = Callable[[MachineQuestion, Sequence[str]], dict[str, MachineAnswer]]


@dataclass(frozen=True)
class Crew:
    """The workers that carry the boots of a machine out: all describe it alike."""

    kind: Kind
    workers: tuple[Worker, ...]
    answer: MachineAnswer
    host: dict[str, Any]
    """What their hosts have in common, for the record."""

    @property
    def slots(self) -> int:
        """Return the number of boots that they carry out at a time."""
        if self.kind == "boot-wall":
            return len({worker.host for worker in self.workers})
        return sum(worker.offer.slots.get(self.kind, 0) for worker in self.workers)


def choose_crew(
    settings: MachineSettings,
    workers: Sequence[Worker],
    answers: Mapping[str, MachineAnswer],
    say: Callable[[str], None],
    checks: Mapping[str, HostCheck],
) -> Crew:
    """Return the largest group of workers that describe a machine alike. Raises NobodyOffers.

    In the wall lane their hosts must be alike, too: the same processor, kernel and distribution; and none whose A/A
    failed (`checks`, by host) is used.
    """
    kind: Kind = "boot-wall" if not LANES[settings.lane].is_repeatable else "boot-model"
    fitting = [worker for worker in workers if worker.offer.slots.get(kind)]
    if not fitting:
        raise NobodyOffers(missing=f"{len(workers)} workers are there, and none has a slot {kind}")
    refused = {
        worker.name: reason
        for worker in fitting
        if (reason := answers[worker.name].refusal or (_why_not_counted(worker, checks) if kind == "boot-wall" else ""))
    }
    groups: dict[str, list[Worker]] = {}
    for worker in fitting:
        if worker.name not in refused:
            groups.setdefault(_likeness(answers[worker.name], kind), []).append(worker)
    if not groups:
        raise NobodyOffers(missing="; ".join(f"{name}: {reason}" for name, reason in sorted(refused.items())))
    crews = [
        Crew(kind, tuple(group), answers[group[0].name], _host(answers[group[0].name], kind))
        for group in groups.values()
    ]
    crews.sort(key=lambda crew: (-crew.slots, crew.workers[0].name))
    for other in crews[1:]:
        names = ", ".join(worker.name for worker in other.workers)
        say(f"note: not used, because their machine or host differs from that of most others: {names}")
    for name, reason in sorted(refused.items()):
        say(f"note: not used: {name}: {reason}")
    return _with_one_host(crews[0], say) if settings.box else crews[0]


def _why_not_counted(worker: Worker, checks: Mapping[str, HostCheck]) -> str:
    """Return why measurements of this worker's host don't count; empty: they do, as far as is known."""
    check = checks.get(worker.host)
    if check is None or check.passed:
        return ""
    return f"{worker.host} failed its A/A of {check.checked:%Y-%m-%d}: {check.detail}"


def _with_one_host(crew: Crew, say: Callable[[str], None]) -> Crew:
    """Return a crew whose workers are on one host, since one box has one lease."""
    host = min(worker.host for worker in crew.workers)
    kept = tuple(worker for worker in crew.workers if worker.host == host)
    for other in crew.workers:
        if other not in kept:
            say(f"note: not used: {other.name}: one host carries out the boots of a box, {host}")
    return replace(crew, workers=kept)


def _host(answer: MachineAnswer, kind: Kind) -> dict[str, Any]:
    if kind != "boot-wall":
        return answer.host
    return {fact: value for fact, value in answer.host.items() if fact != VARIES}


def _likeness(answer: MachineAnswer, kind: Kind) -> str:
    host = _host(answer, kind) if kind == "boot-wall" else {}
    return json.dumps([answer.facts, host], sort_keys=True)


class FleetMachine:
    """A machine that workers of a fleet open. It boots nothing itself: see carrier.py."""

    def __init__(
        self, settings: MachineSettings, workers: Sequence[Worker], ask: Ask, checks: Mapping[str, HostCheck]
    ) -> None:
        """`checks` are the A/As of hosts, by name."""
        self.settings = settings
        self._workers, self._ask, self._checks = workers, ask, checks
        self._here = open_machine(settings)
        self.needs = Needs()
        self._crew: Crew | None = None

    @property
    def crew(self) -> Crew:
        """The workers that carry out its boots; known once it was equipped."""
        assert self._crew, "the machine was not equipped"
        return self._crew

    def provide(self, needs: Needs, state: State, talk: Talk) -> None:  # noqa: ARG002
        """Choose the workers. Raises NobodyOffers and SchedulerUnreachable."""
        self.needs = needs
        question = MachineQuestion(package=this_kdyno(), machine=self.settings, needs=needs)
        answers = self._ask(question, [worker.name for worker in self._workers])
        self._crew = choose_crew(self.settings, self._workers, answers, talk.say, self._checks)

    def describe(self) -> Description:
        about = self.crew.answer.description(self.crew.slots, self.crew.host)
        return replace(about, notices=(*about.notices, *self._notices()))

    def _notices(self) -> tuple[str, ...]:
        """Return the note that hosts of the wall lane have had no A/A, unless all have."""
        unchecked = sorted({worker.host for worker in self.crew.workers} - self._checks.keys())
        if self.crew.kind != "boot-wall" or not unchecked:
            return ()
        hosts = ", ".join(unchecked)
        return (f"no A/A of these hosts is on record: {hosts} (`kdyno fleet check` measures one kernel twice there)",)

    def cpu(self) -> Cpu:
        if self.crew.answer.cpu is None:
            raise NoCpuinfo(path="/proc/cpuinfo", why=f"{self.crew.workers[0].name} can't read its own")
        return self.crew.answer.cpu

    def require_cpu(self, flags: Sequence[str], what: str) -> None:
        if not flags:
            return
        name = self.crew.workers[0].name
        question = MachineQuestion(package=this_kdyno(), machine=self.settings, needs=self.needs, flags=tuple(flags))
        answer = self._ask(question, [name])[name]
        if answer.refusal or answer.lacks:
            raise CpuLacks(what=what, missing=answer.lacks or answer.refusal, cpu=f"that of {name}")

    def require_options(self, kernel: Path, output: Output) -> None:
        self._here.require_options(kernel, output)

    def require_cmdline(self, words: Sequence[str], what: str) -> None:
        self._here.require_cmdline(words, what)

    def stand_in(self, variant: str, block: int) -> str:
        return self._here.stand_in(variant, block)

    def boot(self, order: BootOrder) -> BootEnd:
        """Boot here, what belongs to no run: a check boot."""
        return self._here.boot(order)

    def converse(self, order: BootOrder) -> int:  # noqa: ARG002
        raise NoShell(type=self.settings.type)
