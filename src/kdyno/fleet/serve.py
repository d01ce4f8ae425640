"""The processes of a fleet around Dask, which carries tickets: the scheduler, and a worker that attends to them.

A worker outlives its connection: when the scheduler is gone, boots go on and are committed, and the worker connects
again.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import uuid
from contextlib import nullcontext, suppress
from typing import Any

import dask
from distributed import Scheduler
from distributed import Worker as DaskWorker

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.fleet.errors import SchedulerUnreachable
from kdyno.fleet.fleet_file import Fleet
from kdyno.fleet.offer import make_offer
from kdyno.fleet.package_digest import this_kdyno
from kdyno.fleet.queue.model import Kind, Worker
from kdyno.fleet.wall_slot import hold_wall_slot
from kdyno.fleet.worker import Attendant

RETRY_SECONDS = 1.0
ANY_LOOPBACK_PORT = "127.0.0.1:0"
SPARE_THREADS = 2
"""Threads beside the slots, for questions."""
GRACE_SECONDS = 10.0
"""The seconds in which a stopped worker ends its boots."""


def configure_dask(lease_seconds: float) -> None:
    """Set what kdyno needs of Dask in this process; its own messages are of no use to people."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    dask.config.set(
        {
            "distributed.scheduler.worker-ttl": f"{max(2.0, 2 * lease_seconds)}s",
            "distributed.scheduler.allowed-failures": 1000,  # PostgreSQL counts what ends workers
            "distributed.scheduler.work-stealing": True,
            "distributed.worker.memory.target": False,
            "distributed.worker.memory.spill": False,
            "distributed.worker.memory.pause": False,
            "distributed.worker.memory.terminate": False,
            "distributed.worker.profile.enabled": False,
            "distributed.admin.low-level-log-length": 0,
            "distributed.admin.system-monitor.gil.enabled": False,
            "distributed.comm.retry.count": 0,
            "distributed.comm.timeouts.connect": "10s",
            "distributed.scheduler.idle-timeout": None,
        }
    )


def serve_scheduler(fleet: Fleet, talk: Talk, *, listen: str, dashboard: str | None) -> None:
    """Run the scheduler until a signal. `listen` is HOST:PORT. Raises SchedulerUnreachable if the address is taken."""
    configure_dask(fleet.file.lease_seconds)

    async def serve(stop: asyncio.Event) -> None:
        # Dask serves its own state by HTTP in any case: on loopback, unless it is asked for.
        options = {"dashboard": dashboard is not None, "dashboard_address": dashboard or ANY_LOOPBACK_PORT}
        try:
            scheduler = Scheduler(host=f"tls://{listen}", security=fleet.security("scheduler"), **options)
            await scheduler
        except OSError as error:
            raise SchedulerUnreachable(address=listen, why=error.strerror or str(error)) from error
        talk.say(f"scheduler of fleet {fleet.file.id} at {scheduler.address}")
        try:
            await _wait_for_any(stop.wait(), scheduler.finished())
        finally:
            with suppress(TimeoutError):
                await asyncio.wait_for(scheduler.close(), GRACE_SECONDS)

    _run(serve)


def serve_worker(
    fleet: Fleet, state: State, talk: Talk, *, name: str, host: str, slots: dict[Kind, int], listen: str
) -> None:
    """Attend to tickets until a signal. Raises WallSlotTaken, QueueFailed, QueueOlder, QueueNewer and OtherFleet."""
    configure_dask(fleet.file.lease_seconds)
    with hold_wall_slot(host) if slots.get("boot-wall") else nullcontext(), fleet.queue() as queue:
        queue.require_current(fleet.file.id)
        worker = Worker(uuid.uuid4().hex, name, host, make_offer(slots, state), this_kdyno())
        attendant = Attendant(worker, queue, fleet.blobs(), state, talk)
        attendant.start()
        try:
            _run(_Connection(fleet, attendant, state, talk, listen).keep)
        finally:
            attendant.stop()
            # Threads that are amid a boot would keep the process: the boots have been cancelled and given back.
            attendant.wait(GRACE_SECONDS)
            attendant.let_boxes_go()


class _Connection:
    """The connection of a worker to the scheduler, made again whenever it is lost."""

    def __init__(self, fleet: Fleet, attendant: Attendant, state: State, talk: Talk, listen: str) -> None:
        self._fleet, self._attendant, self._talk = fleet, attendant, talk
        slots = {kind: count for kind, count in attendant.worker.offer.slots.items() if count}
        self._options: dict[str, Any] = {
            "name": attendant.worker.name,
            "nthreads": sum(slots.values()) + SPARE_THREADS,
            "resources": slots,
            "security": fleet.security("worker"),
            "host": listen or None,
            "dashboard": False,
            "dashboard_address": ANY_LOOPBACK_PORT,
            "memory_limit": 0,
            "local_directory": str(state.file("fleet")),
            "death_timeout": 10,
        }
        self._is_told = False

    async def keep(self, stop: asyncio.Event) -> None:
        """Connect, and connect again, until the event is set."""
        while not stop.is_set():
            carrier = DaskWorker(self._fleet.file.scheduler, **self._options)
            carrier.kdyno = self._attendant
            try:
                await carrier
            except Exception as error:  # Dask raises many kinds
                self._say_unreachable(error)
            else:
                self._is_told = False
                self._talk.say(f"{carrier.name}: connected to {self._fleet.file.scheduler}")
                await _wait_for_any(stop.wait(), carrier.finished())
            if stop.is_set():
                self._attendant.stop()
            with suppress(Exception):
                await asyncio.wait_for(carrier.close(executor_wait=False), GRACE_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), RETRY_SECONDS)

    def _say_unreachable(self, error: Exception) -> None:
        if not self._is_told:
            self._is_told = True
            reason = str(error.__cause__ or error) or type(error).__name__
            self._talk.warn(f"can't reach the scheduler {self._fleet.file.scheduler} ({reason}): trying again")


async def _wait_for_any(*events: Any) -> None:
    tasks = [asyncio.ensure_future(event) for event in events]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


def _run(serve: Any) -> None:
    """Run a coroutine that ends when its event is set, by a signal."""

    async def until_signal() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop.set)
        await serve(stop)

    asyncio.run(until_signal())
