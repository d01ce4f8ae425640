"""A toy kernel with modules that was judged, for the packages that are made of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.runs.session import Session
from kdyno.ship import ship as ship_module
from kdyno.store.records import RunRecord
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
from tests.unit.ship_specimen import experiment_of, judged_run, session_of, small_disk


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory for shipments without linters, which take seconds, and without the room for a kernel of real size."""
    with pytest.MonkeyPatch.context() as patch:
        small_disk(patch)
        patch.setattr(ship_module, "lint", lambda *_: None)
        yield tmp_path_factory.mktemp("ship")


@pytest.fixture(scope="module")
def session(place: Path) -> Iterator[Session]:
    state = State(place / "state")
    with Store(sqlite_file(state.store_file)) as store:
        yield session_of(state, store)


@pytest.fixture(scope="module")
def run(place: Path, session: Session) -> RunRecord:
    return judged_run(experiment_of(place, {"MODULES": True}), session)
