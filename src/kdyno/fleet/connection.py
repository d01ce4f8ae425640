"""What a client of a fleet is connected to: its queue, its blob store and its scheduler."""

from __future__ import annotations

from threading import Lock
from types import TracebackType
from typing import Self

from kdyno.fleet.carriage import Carriage
from kdyno.fleet.fleet_file import Fleet


class FleetConnection:
    """As a context manager, it connects and disconnects.

    Raises SchedulerUnreachable, OtherKdyno, and what opening the queue raises.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.queue, self.blobs = fleet.queue(), fleet.blobs()
        self.carriage = Carriage(fleet)
        self.lock = Lock()
        """Held while `carriage` is in use."""

    def __enter__(self) -> Self:
        try:
            self.queue.require_current(self.fleet.file.id)
            self.carriage.connect()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        self.carriage.close()
        self.queue.close()
