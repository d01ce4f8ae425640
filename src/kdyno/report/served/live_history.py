"""The history of a store that others write to meanwhile."""

from __future__ import annotations

import threading

from kdyno.base.errors import KdynoError
from kdyno.judge.history.changes import history
from kdyno.judge.history.model import History
from kdyno.judge.history.triage import with_triage
from kdyno.store.store import Store
from kdyno.store.url import StoreUrl


class LiveHistory:
    """The newest history that was computed. It is computed again, in a thread, when somebody asks for it and the store
    has more runs or boots; entries on changes are read each time. Safe for threads.
    """

    def __init__(self, store: StoreUrl) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._renewal: threading.Thread | None = None
        self._failure: KdynoError | None = None
        self._counts, self._history = self._compute()

    def current(self) -> History:
        """Return the history with all entries. Raise what reading a store raises."""
        with Store(self._store, "read") as store:
            counts, entries = store.count_records(), store.triage()
        with self._lock:
            failure, self._failure = self._failure, None
            if failure:
                raise failure
            is_renewed = self._renewal is not None and self._renewal.is_alive()
            if counts != self._counts and not is_renewed:
                self._renewal = threading.Thread(target=self._renew, daemon=True)
                self._renewal.start()
            newest = self._history
        return with_triage(newest, entries)

    def _compute(self) -> tuple[tuple[int, int], History]:
        with Store(self._store, "read") as store:
            counts = store.count_records()
            return counts, history(store.series())

    def _renew(self) -> None:
        try:
            counts, newest = self._compute()
        except KdynoError as error:
            with self._lock:
                self._failure = error  # for whoever asks next
            return
        with self._lock:
            self._counts, self._history = counts, newest
