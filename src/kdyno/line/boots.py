"""Carrying out the boots of a run: in planned order, side by side where that is fair, each on record when it ends."""

from __future__ import annotations

import shutil
import signal
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from threading import Event, current_thread, main_thread

from kdyno.experiment.plan import PlannedBoot, plan_boots
from kdyno.line.prepare import Images, Prepared
from kdyno.machine.base import BootEnd, BootOrder
from kdyno.machine.conditions import watched
from kdyno.state import State, disk_full_is_said
from kdyno.store.artefacts import Artefacts
from kdyno.store.giving_up import given_up
from kdyno.store.records import BootRecord
from kdyno.store.store import Store
from kdyno.talk import Talk

ATTEMPTS = 3
"""How often a boot is started by one command before it stays lost."""


@dataclass
class Outcome:
    """What came of a run's boots."""

    done: int = 0
    """Boots carried out by this command."""
    lost: dict[str, str] = field(default_factory=dict)
    """Boots that stayed lost, and why."""
    given_up: dict[str, str] = field(default_factory=dict)
    """Variants that don't boot, and why."""


class Boots:
    """The boots of one run; what is on record already is not done again."""

    def __init__(
        self, run_id: str, prepared: Prepared, images: Images, *, state: State, store: Store, talk: Talk
    ) -> None:
        self.run_id, self.prepared, self.images = run_id, prepared, images
        self.state, self.store, self.talk = state, store, talk
        self.artefacts = Artefacts(state.artefacts)
        self.cancelled = Event()
        self.outcome = Outcome()
        self.ended: list[BootRecord] = []
        """On record, without their samples."""

    def carry_out(self, blocks: int) -> Outcome:
        """Do every boot of the first `blocks` that is not on record yet. Ctrl-C ends the guests, keeps what is done."""
        self.cancelled, self.ended = Event(), []
        self._sweep()  # what a kdyno that was killed left
        for known in self.store.boots(self.run_id):
            self._learn(known)
        progress = self.store.progress(self.run_id)
        planned = [boot for boot in plan_boots(self.prepared.experiment) if boot.block < blocks]
        waiting = deque(boot for boot in planned if (boot.variant, boot.block) not in progress.finished)
        if not waiting:
            return self.outcome
        threads = self.prepared.about.parallel
        with self._ctrl_c_cancels(), self.talk.working("booting") as advance, ThreadPoolExecutor(threads) as pool:
            done = len(planned) - len(waiting)
            advance(done, len(planned), "")
            try:
                for boot, end in self._ended(pool, waiting, Counter(progress.attempts)):
                    done += 1
                    advance(done, len(planned), f"{boot.variant}, block {boot.block}: {end.status}")
            finally:
                self.cancelled.set()
                pool.shutdown()
                self._sweep()
        return self.outcome

    @contextmanager
    def _ctrl_c_cancels(self) -> Iterator[None]:
        """Let Ctrl-C end the boots in flight; the loop below then stops by itself.

        A KeyboardInterrupt at any moment could come while the main thread holds the lock of a future, which the boot's
        thread needs to end: both would wait for ever.
        """
        ignored = signal.getsignal(signal.SIGINT) is not signal.default_int_handler  # as in a background job
        if ignored or current_thread() is not main_thread():
            yield
            return
        signal.signal(signal.SIGINT, lambda _number, _frame: self.cancelled.set())
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _sweep(self) -> None:
        """Remove the scratch directories of boots that nobody waits for any more."""
        for leftover in self.state.boots.glob(f"{self.run_id}-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def _ended(
        self, pool: ThreadPoolExecutor, waiting: deque[PlannedBoot], attempts: Counter[tuple[str, int]]
    ) -> Iterator[tuple[PlannedBoot, BootEnd]]:
        """Boots as they end and are on record, `parallel` at a time; a lost one is started again."""
        before = attempts.copy()
        running: dict[Future[tuple[BootEnd, dict[str, float]]], tuple[PlannedBoot, datetime, Path]] = {}
        while True:
            while waiting and len(running) < self.prepared.about.parallel:
                boot = waiting.popleft()
                if boot.variant not in self.outcome.given_up:
                    scratch = Path(mkdtemp(prefix=f"{self.run_id}-", dir=self.state.boots))
                    future = pool.submit(self._boot, self._order(boot, scratch))
                    running[future] = (boot, datetime.now(UTC), scratch)
            if not running:
                return
            ended = wait(running, return_when=FIRST_COMPLETED).done
            if self.cancelled.is_set():
                raise KeyboardInterrupt
            for future in ended:
                boot, started, scratch = running.pop(future)
                end, conditions = future.result()
                cell = (boot.variant, boot.block)
                self._record(boot, attempts[cell], started, end, conditions)
                shutil.rmtree(scratch)
                attempts[cell] += 1
                if end.status == "lost" and attempts[cell] - before[cell] < ATTEMPTS:
                    waiting.appendleft(boot)
                    continue
                yield boot, end

    def _boot(self, order: BootOrder) -> tuple[BootEnd, dict[str, float]]:
        """One boot, and what the host was doing meanwhile; a replay runs no command, and the host matters nothing."""
        with watched() as conditions:
            end = self.prepared.machine.boot(order)
        return end, conditions if end.command else {}

    def _order(self, boot: PlannedBoot, scratch: Path) -> BootOrder:
        image = self.images[boot.variant][boot.layout] if boot.variant in self.images else None
        return BootOrder(
            name=f"{boot.variant}, block {boot.block}",
            kernel=image.bzimage if image else None,
            vmlinux=image.vmlinux if image else None,
            cmdline=self.prepared.experiment.variants[boot.variant].cmdline,
            job=self.prepared.job,
            seed=boot.seed,
            directory=scratch,
            variant=boot.variant,
            block=boot.block,
            cancelled=self.cancelled,
        )

    def _record(
        self, boot: PlannedBoot, attempt: int, started: datetime, end: BootEnd, conditions: dict[str, float]
    ) -> None:
        with disk_full_is_said(self.state.root):
            record = BootRecord(
                variant=boot.variant,
                block=boot.block,
                position=boot.position,
                layout=boot.layout,
                attempt=attempt,
                seed=boot.seed,
                status=end.status,
                reason=end.reason,
                started=started,
                seconds=end.seconds,
                ready_seconds=end.ready_seconds,
                conditions=conditions,
                kernel=end.report.hello.kernel if end.report.hello else None,
                command=end.command,
                console=self.artefacts.put(end.console) if end.console.exists() else None,
                stream=self.artefacts.put(end.stream) if end.stream.exists() else None,
                pmu=self.artefacts.put(end.pmu) if end.pmu else None,
                samples=end.report.samples if end.status == "ok" else (),
                unsupported=end.report.unsupported,
                broken=end.report.broken,
            )
            self.store.add_boot(self.run_id, record, end.report.benchmarks)
        self.outcome.done += 1
        self._learn(record)
        if end.status == "lost":
            self.outcome.lost[f"{boot.variant}, block {boot.block}"] = end.reason
        else:
            self.outcome.lost.pop(f"{boot.variant}, block {boot.block}", None)

    def _learn(self, boot: BootRecord) -> None:
        """Remember how a boot ended; give its variant up when it never came through."""
        self.ended.append(boot.model_copy(update={"samples": ()}))
        self.outcome.given_up = given_up(self.ended)
