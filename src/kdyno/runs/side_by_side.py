"""Boots that run side by side, on this host or on a fleet, each in a thread that waits for its end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from threading import Event
from types import TracebackType
from typing import Self

from kdyno.base.threads import ThreadCall, ThreadCalls
from kdyno.boot.base import BootEnd
from kdyno.runs.carrier import BootCarrier
from kdyno.runs.one_boot import BootRequest

LOOK_SECONDS = 1.0
"""The time between checks for a stop signal: a signal just before a wait without a timeout would go unnoticed."""


@dataclass(frozen=True)
class EndedBoot:
    """A boot that has ended; its files are there until the next one is asked for."""

    key: str
    request: BootRequest
    end: BootEnd
    started: datetime


@dataclass(frozen=True)
class _Running:
    """A boot that has started and not ended."""

    key: str
    request: BootRequest
    started: datetime
    directory: Path


class SideBySide:
    """Boots in threads. When this ends as a context manager, it ends the guests that are left and waits for that."""

    def __init__(self, carrier: BootCarrier, place: Path, cancelled: Event) -> None:
        """Keep the files of boots below `place`. Who sets `cancelled`, as a stop signal does, ends all boots."""
        self._carrier, self._place, self._cancelled = carrier, place, cancelled
        self._calls = ThreadCalls()

    def __enter__(self) -> Self:
        self._calls.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cancelled.set()
        self._calls.__exit__(kind, error, trace)

    def boot_all(self, take_next: Callable[[], tuple[str, BootRequest] | None]) -> Iterator[EndedBoot]:
        """Carry boots out, as many at a time as is fair; yield each when it has ended.

        `take_next` returns the next one with its key, or None if none is left for now: it is asked again when another
        has ended. Raises what a boot raises, and KeyboardInterrupt if they were cancelled.
        """
        running: dict[ThreadCall[BootEnd], _Running] = {}
        while True:
            while len(running) < self._carrier.in_flight and (taken := take_next()):
                key, request = taken
                directory = Path(mkdtemp(dir=self._place))
                call = self._calls.start(self._carrier.boot, key, request, directory, self._cancelled)
                running[call] = _Running(key, request, datetime.now(UTC), directory)
            if not running:
                return
            self._calls.wait_for_any(LOOK_SECONDS)
            if self._cancelled.is_set():
                raise KeyboardInterrupt
            for call in [call for call in running if call.has_ended()]:
                one = running.pop(call)
                end = call.result()
                yield EndedBoot(one.key, one.request, end, end.started or one.started)
                shutil.rmtree(one.directory)
