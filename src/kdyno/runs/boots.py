"""The boots of a run: in planned order, side by side where that is fair, each recorded when it ends."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from threading import Event

from kdyno.base.stop_signals import stops_set
from kdyno.boot.base import BootEnd
from kdyno.runs.carrier import BootCarrier, BootsToCarry
from kdyno.runs.experiment.plan import PlannedBoot
from kdyno.runs.images import Images
from kdyno.runs.one_boot import BootRequest, attach_samples, boot_record
from kdyno.runs.prepare import Prepared
from kdyno.runs.run_plan import RunPlan
from kdyno.runs.session import Session
from kdyno.runs.side_by_side import SideBySide
from kdyno.runs.so_far import judge_of_run

ATTEMPTS = 3
"""The number of times that one command starts a boot before it counts as lost."""
RERUNS = 2
"""The most times that a boot is run again, by all commands together, because other work on the host disturbed it."""


@dataclass
class Outcome:
    """The outcome of a run's boots."""

    done: int = 0
    """Boots carried out by this command."""
    lost: dict[str, str] = field(default_factory=dict)
    """The reason by name of each boot that was lost at every attempt."""
    given_up: dict[str, str] = field(default_factory=dict)
    """The reason by name of each variant that doesn't boot."""


class Boots:
    """The boots of one run. A boot that is on record is not repeated, whichever run recorded it."""

    def __init__(self, plan: RunPlan, prepared: Prepared, images: Images, session: Session) -> None:
        self.plan, self.prepared, self.images = plan, prepared, images
        self.session, self.artefacts = session, session.artefacts
        self.so_far = judge_of_run(session.store, plan.id, self.artefacts, session.talk)
        self.outcome = Outcome()

    def carry_out(self, blocks: int) -> Outcome:
        """Carry out every boot of the first `blocks` that is not on record.

        Ctrl-C ends the guests, and keeps the records.
        """
        progress = self.plan.progress(self.session.store, blocks)
        self.outcome.given_up = progress.given_up
        waiting = deque(self.plan.boots_of(progress.left))
        if not waiting:
            return self.outcome
        cancelled = Event()
        with (
            stops_set(cancelled),
            self.session.talk.working("booting") as advance,
            self.session.state.scratch(self.plan.id) as place,
            self._carrying(waiting) as carrier,
            SideBySide(carrier, place, cancelled) as boots,
        ):
            total = len(self.plan.boots_of(progress.cells))
            done = total - len(waiting)
            advance(done, total, "")
            for boot, end in self._run_boots(boots, waiting, blocks):
                done += 1
                advance(done, total, f"{boot.variant}, block {boot.block}: {end.status}")
                self.session.talk.on_boot_ended()
                if done < total:
                    self.so_far.boot_ended()
        return self.outcome

    def _run_boots(
        self, boots: SideBySide, waiting: deque[PlannedBoot], blocks: int
    ) -> Iterator[tuple[PlannedBoot, BootEnd]]:
        """Yield boots when they have ended and are on record.

        A lost boot is started again, and a disturbed one, whose last attempt counts in any case.
        """
        planned = {self.plan.keys[boot.cell]: boot for boot in waiting}
        attempts: Counter[str] = Counter()
        reruns = self.session.store.count_reruns(planned)

        def take_next() -> tuple[str, BootRequest] | None:
            while waiting:
                boot = waiting.popleft()
                if boot.variant not in self.outcome.given_up:
                    return self.plan.keys[boot.cell], self._request(boot)
            return None

        for ended in boots.boot_all(take_next):
            boot, key = planned[ended.key], ended.key
            end = attach_samples(ended.end, self.prepared.experiment.workload)
            is_rerun = end.status == "ok" and bool(end.disturbance) and reruns[key] < RERUNS
            if is_rerun:
                end = replace(end, status="lost", reason=end.disturbance)
            record = boot_record(key, boot.seed, ended.started, end, self.artefacts)
            self.session.store.add_boot(record, end.report.benchmarks)
            if is_rerun:
                reruns[key] += 1
                waiting.appendleft(boot)
                continue
            attempts[key] += 1
            self._learn(boot, end, blocks)
            if end.status == "lost" and attempts[key] < ATTEMPTS:
                waiting.appendleft(boot)
                continue
            yield boot, end

    def _carrying(self, waiting: Iterable[PlannedBoot]) -> AbstractContextManager[BootCarrier]:
        """Begin to carry these boots out, on this host or elsewhere."""
        prepared, session = self.prepared, self.session
        boots = BootsToCarry(
            name=self.plan.id,
            boots={self.plan.keys[boot.cell]: self._request(boot) for boot in waiting},
            machine=prepared.machine,
            about=prepared.about,
            store=session.store,
            talk=session.talk,
        )
        return session.carrier.carrying_boots(boots)

    def _request(self, boot: PlannedBoot) -> BootRequest:
        return BootRequest(
            name=f"{boot.variant}, block {boot.block}",
            image=self.images[boot.variant][boot.layout_index] if boot.variant in self.images else None,
            cmdline=self.prepared.cmdline(boot.variant),
            job=self.prepared.job,
            seed=boot.seed,
            variant=boot.variant,
            block=boot.block,
            position=boot.position,
        )

    def _learn(self, boot: PlannedBoot, end: BootEnd, blocks: int) -> None:
        """Note how a boot ended, and give up a variant whose boots all failed."""
        self.outcome.done += 1
        name = f"{boot.variant}, block {boot.block}"
        if end.status == "lost":
            self.outcome.lost[name] = end.reason
            return
        self.outcome.lost.pop(name, None)
        if end.status == "failed":
            self.outcome.given_up = self.plan.progress(self.session.store, blocks).given_up
