"""The client's side of Dask: it brings tickets and questions to workers. What is lost on the way is sent again."""

from __future__ import annotations

import asyncio
import itertools
import ssl
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from distributed import Client, Future

from kdyno.fleet.deliver import ask, deliver, identify
from kdyno.fleet.errors import OtherKdyno, SchedulerUnreachable
from kdyno.fleet.fleet_file import Fleet
from kdyno.fleet.messages import MachineAnswer, MachineQuestion, Ticket
from kdyno.fleet.package_digest import this_kdyno
from kdyno.fleet.queue.model import Kind, Worker
from kdyno.fleet.serve import configure_dask

CONNECT_SECONDS = 10
LOOK_SECONDS = 1.0
"""The time between looks at whether a worker that was asked is still there."""
ANSWER_SECONDS = 600
"""The seconds for an answer: a worker may have to make a root file system first."""
LOST = (OSError, TimeoutError, asyncio.TimeoutError, RuntimeError, ValueError, ssl.SSLError)
"""What Dask raises without a scheduler."""


@dataclass(frozen=True)
class SentTicket:
    """A ticket, and the workers that may take it. Dask sends it to their addresses: not to a worker of the same name
    that was started later.
    """

    future: Future
    workers: frozenset[str]
    """By their ids."""


class Carriage:
    """A connection to the scheduler of a fleet. Not safe for threads."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._client: Client | None = None
        self._tickets: dict[Kind, list[SentTicket]] = {}
        self._numbers = itertools.count()

    def connect(self) -> None:
        """Connect, unless that is done. Raises SchedulerUnreachable and OtherKdyno."""
        if self._client is not None and self._client.status == "running":
            return
        self.close()
        configure_dask(self._fleet.file.lease_seconds)
        address = self._fleet.file.scheduler
        try:
            client = Client(
                address, security=self._fleet.security("client"), timeout=CONNECT_SECONDS, set_as_default=False
            )
        except LOST as error:
            cause = error.__cause__ or error
            raise SchedulerUnreachable(address=address, why=str(cause) or type(cause).__name__) from error
        try:
            theirs = client.run_on_scheduler(identify)
        except (*LOST, ImportError, AttributeError) as error:
            client.close()
            raise OtherKdyno(what="scheduler", theirs=str(error), ours=this_kdyno()) from error
        if theirs != this_kdyno():
            client.close()
            raise OtherKdyno(what="scheduler", theirs=theirs, ours=this_kdyno())
        self._client = client

    def close(self) -> None:
        """Disconnect; tickets that nobody has taken are void."""
        client, self._client, self._tickets = self._client, None, {}
        if client is not None:
            with suppress(*LOST):
                client.close(timeout=2)

    def workers(self) -> list[str]:
        """Return the names of the connected workers. Raises SchedulerUnreachable."""
        return sorted(self._addresses())

    def ask(self, question: MachineQuestion, names: Sequence[str]) -> dict[str, MachineAnswer]:
        """Ask workers, by their names; the answer of one that gives none says so. Raises SchedulerUnreachable."""
        client, text = self._connected(), question.model_dump_json()
        addresses = self._addresses()
        futures = {
            name: client.submit(ask, text, key=self._key("ask", name), workers=[name], pure=False)
            for name in names
            if name in addresses  # Dask keeps a question for any other for ever
        }
        gone = MachineAnswer(refusal="it isn't connected any more")
        return {name: self._answer(futures[name], name, addresses[name]) if name in futures else gone for name in names}

    def _answer(self, future: Future, name: str, address: str) -> MachineAnswer:
        """Wait for the answer of a worker. One that was started again has another address, and never gets the question.
        Raises SchedulerUnreachable.
        """
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return MachineAnswer.model_validate_json(future.result(timeout=LOOK_SECONDS))
            except TimeoutError:
                if self._addresses().get(name) != address:
                    return MachineAnswer(refusal="it doesn't answer: it was started again")
                if time.monotonic() > deadline:
                    return MachineAnswer(refusal=f"it doesn't answer within {ANSWER_SECONDS} s")
            except LOST as error:
                return MachineAnswer(refusal=f"it doesn't answer: {error}")

    def _addresses(self) -> dict[str, str]:
        """Return the addresses of the connected workers by name. Raises SchedulerUnreachable."""
        try:
            known = self._connected().scheduler_info(n_workers=-1)["workers"]
        except LOST as error:
            raise self._lost(error) from error
        return {str(worker["name"]): str(address) for address, worker in known.items()}

    def outstanding(self, kind: Kind, alive: Iterable[Worker]) -> int:
        """Return the number of tickets that were neither used nor lost: one of their workers is alive."""
        ids = {worker.id for worker in alive}
        tickets = self._tickets.get(kind, ())
        self._tickets[kind] = [ticket for ticket in tickets if not ticket.future.done() and ticket.workers & ids]
        return len(self._tickets[kind])

    def void(self, kind: Kind) -> None:
        """Take back all tickets that nobody has taken."""
        self._tickets.pop(kind, None)

    def send(self, run: str, kind: Kind, preferred: str, workers: Sequence[Worker]) -> None:
        """Send a ticket that prefers the task of a key to one of the workers. Raises SchedulerUnreachable."""
        client = self._connected()
        ticket = Ticket(package=this_kdyno(), run=run, kind=kind, preferred=preferred)
        try:
            future = client.submit(
                deliver,
                ticket.model_dump_json(),
                key=self._key(kind, preferred),
                workers=[worker.name for worker in workers],
                resources={kind: 1},
                pure=False,
            )
        except LOST as error:
            raise self._lost(error) from error
        ids = frozenset(worker.id for worker in workers)
        self._tickets.setdefault(kind, []).append(SentTicket(future, ids))

    def _key(self, kind: str, name: str) -> str:
        return f"{kind}-{name[:16]}-{next(self._numbers)}-{id(self):x}"

    def _connected(self) -> Client:
        if self._client is None or self._client.status != "running":
            raise SchedulerUnreachable(address=self._fleet.file.scheduler, why="the connection was lost")
        return self._client

    def _lost(self, error: BaseException) -> SchedulerUnreachable:
        return SchedulerUnreachable(address=self._fleet.file.scheduler, why=str(error) or type(error).__name__)
