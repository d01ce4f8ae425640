"""Exporting and removing runs of a store, and importing those of another one."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kdyno.base.errors import UserError
from kdyno.base.state import State, require_space
from kdyno.kernel.source_trees import remove_tree
from kdyno.store.artefacts import Artefacts
from kdyno.store.errors import RunThere
from kdyno.store.run_file import NoRunFile, RunFileUnfit, read_run, write_run
from kdyno.store.store import Store
from kdyno.store.upkeep.gc import StateInUse, take_away
from kdyno.store.whole import WholeRun


class RunUnderWay(UserError):
    message = "run {run} is being carried out: nothing was removed"
    hint = "wait for it to end, or end it (Ctrl-C), and run the same command again"


@dataclass(frozen=True)
class Imported:
    """The records that an import added."""

    run: str
    name: str
    boots: int
    """Boots that weren't on record before."""
    artefacts: int
    host: str


def remove_run(run_id: str, state: State, store: Store, others: Sequence[Store]) -> int:
    """Take a run off the record, and remove the artefacts that no boot has any more; return the number of its boots
    that were removed.

    Raise RunUnderWay and StateInUse; then nothing was removed.
    """
    with state.hold_alone() as is_alone:
        if not is_alone:
            locks = state.held_names()
            if f"run-{run_id}" in locks:
                raise RunUnderWay(run=run_id)
            raise StateInUse(state=state.root, locks=", ".join(locks) or "it begins just now")
        removed = store.remove_run(run_id)
        needed = {digest for other in others for digest in other.artefacts()}
        directory = state.artefacts
        moved = take_away((directory / digest[:2] / digest for digest in sorted(removed.artefacts - needed)), state)
    for path in moved:
        remove_tree(path)
    return removed.boots


def export_run(run_id: str, path: Path, state: State, store: Store) -> list[str]:
    """Write a run's file; return the artefacts that are lost or damaged, and left out."""
    with state.hold_shared():
        return write_run(store.whole_run(run_id), Artefacts(state.artefacts), path)


def import_run(path: Path, state: State, store: Store, tested_run: Callable[[dict[str, Any]], str]) -> Imported:
    """Put the run in a file on record, all or nothing. Raises NoRunFile, RunThere, NoSpace and what `read_run` raises.

    `tested_run` returns the run of a self-test's record, and raises ValueError if it can't be read.
    """
    with state.scratch("import") as scratch, _open_run_file(path) as file:

        def keep(digest: str, content: bytes) -> None:
            (scratch / digest).write_bytes(content)

        # They lie in the scratch directory, and are copied from there.
        whole = read_run(file, str(path), keep, lambda size: require_space(scratch, 2 * size))
        _require_own_selftest(whole, str(path), tested_run)
        if store.has_run(whole.run.id):
            raise RunThere(run=whole.run.id, where=store.where)
        artefacts = Artefacts(state.artefacts)
        directory = artefacts.directory
        new = [kept for kept in sorted(scratch.iterdir()) if not (directory / kept.name[:2] / kept.name).exists()]
        for kept in sorted(scratch.iterdir()):
            artefacts.put(kept)
        boots = store.take_in(whole)  # if that fails, gc removes the artefacts that nothing has: another may have them
    host = ", ".join(f"{name} {value}" for name, value in whole.run.host.items())
    return Imported(whole.run.id, whole.run.name, boots, len(new), host)


def _open_run_file(path: Path) -> IO[bytes]:
    """Return a regular file that somebody named, without waiting, as a pipe would make it. Raise NoRunFile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NoRunFile(name=path, why=error.strerror) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NoRunFile(name=path, why="it is not a regular file")
    return os.fdopen(descriptor, "rb")


def _require_own_selftest(whole: WholeRun, name: str, tested_run: Callable[[dict[str, Any]], str]) -> None:
    """Raise an error if the run's self-test can't be read: a store's self-tests are read for every report, and one
    would spoil them all.
    """
    if whole.selftest is None:
        return
    try:
        run = tested_run(whole.selftest.found)
    except ValueError as error:
        raise RunFileUnfit(name=name, why="the result of its self-test can't be read") from error
    if run != whole.run.id:
        raise RunFileUnfit(name=name, why="its self-test is that of another run")
