"""Memory is refused: the store is as before or as after, and the next time goes on."""

from __future__ import annotations

import errno
import math
import shutil
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import Lab
from tests.cli.faults import CRASHED, KINDS, NO_FAULT, Ended, Fault, Faulty, faulty
from tests.cli.test_faults import artefacts, require_all_artefacts, require_whole_artefacts, starts

MEMORY = KINDS.index("memory")
FIRST = 100
"""Before this allocation a command has hardly begun."""
LEAST, MOST = 1 << 21, 1 << 25
"""Bytes. With less not even Python tells what is wrong; with more the commands here succeed."""
ENDED_BELOW = {
    -signal.SIGABRT: "what is written in Rust (pydantic) aborts",
    -signal.SIGALRM: "Python or a library waits for ever; server.py ends that",
    127: "glibc has no memory for the data of a thread",
}
"""Statuses with which a process ends, when memory is refused, before kdyno is told."""
ENDED_BY_KERNEL = {-signal.SIGSEGV: "the stack can't grow beyond RLIMIT_AS (getrlimit(2))"}
"""The same where address space is limited, and not one allocation refused."""
NOT_SAID = "SchemaError: "
"""What pydantic makes of a refusal in places: a crash of kdyno, with a traceback."""
Shortage = tuple[Fault, int | None]
TRIES = pytest.mark.parametrize("tries", [4, pytest.param(60, marks=pytest.mark.long)])


@pytest.fixture
def run(lab: Lab) -> Iterator[Faulty]:
    with faulty(lab.directory, lab.environment) as commands:
        yield commands


def between(least: int, most: int, tries: int) -> list[int]:
    """So many numbers from the least to the most, each larger than the one before by the same factor."""
    return [round(least * math.exp(math.log(most / least) * step / (tries - 1))) for step in range(tries)]


def shortages(clean: Ended, tries: int) -> Iterator[Shortage]:
    for n in between(FIRST, clean.calls[MEMORY], tries):
        yield (MEMORY, n, errno.ENOMEM, 0), None
    for most in between(LEAST, MOST, tries):
        yield NO_FAULT, most


def ended_below(shortage: Shortage) -> dict[int, str]:
    """The statuses for which neither kdyno nor Python is to blame."""
    return ENDED_BELOW if shortage[1] is None else {**ENDED_BELOW, **ENDED_BY_KERNEL}


def require_said(ended: Ended, shortage: Shortage) -> None:
    """One message; beside it Python may say what it could not clean up, and have no memory left to end that line."""
    if ended.status == CRASHED and NOT_SAID in ended.err:
        return
    assert ended.status in (0, 3, *ended_below(shortage)), (shortage, ended)
    if ended.status == 3:
        assert ended.err.count("kdyno: ") == 1, (shortage, ended.err)


def require_sound(state: Path, shortage: Shortage) -> None:
    require_whole_artefacts(state, shortage[0])
    if (state / "store.sqlite").exists():
        with sqlite3.connect(state / "store.sqlite") as store:
            assert store.execute("PRAGMA quick_check").fetchall() == [("ok",)], shortage
        store.close()


def refused(run: Faulty, words: Sequence[str], directory: Path, tries: int) -> Iterator[tuple[Shortage, Ended, Path]]:
    """Carry a command out with each shortage, in a new state directory, and look at what it left."""
    clean = run(*words, str(directory / "clean"))
    for number, shortage in enumerate(shortages(clean, tries)):
        state = directory / f"state-{number}"
        fault, memory = shortage
        ended = run(*words, str(state), fault=fault, memory=memory)
        require_said(ended, shortage)
        require_sound(state, shortage)
        yield shortage, ended, state
        require_all_artefacts(state, fault)
        shutil.rmtree(state)


@TRIES
def test_a_run_goes_on_after_memory_was_refused(lab: Lab, run: Faulty, tries: int) -> None:
    words = ["run", lab.experiment(blocks=2), "-q", "--state"]
    expected = run(*words, str(lab.directory / "expected")).out
    for shortage, _, state in refused(run, words, lab.directory, tries):
        before = starts(state)
        again = run(*words, str(state))
        assert (again.status, again.out) == (0, expected), (shortage, again)
        assert before.items() <= starts(state).items(), shortage


@TRIES
def test_an_export_and_an_import_are_done_or_not_done_where_memory_was_refused(
    lab: Lab, run: Faulty, tries: int
) -> None:
    assert lab("run", lab.experiment(blocks=2), "-q").status == 0
    packed = lab.directory / "run.kdyno"
    clean = run("store", "export", "latest", str(packed))
    whole, beside = packed.read_bytes(), set(lab.directory.iterdir())
    for shortage in shortages(clean, tries):
        packed.write_bytes(b"what was there")
        fault, memory = shortage
        ended = run("store", "export", "latest", str(packed), fault=fault, memory=memory)
        require_said(ended, shortage)
        assert packed.read_bytes() == (b"what was there" if ended.status else whole), shortage
        if ended.status not in ended_below(shortage):
            assert set(lab.directory.iterdir()) == beside, shortage
    packed.write_bytes(whole)
    words = ["store", "import", str(packed), "--state"]
    for shortage, ended, state in refused(run, words, lab.directory, tries):
        assert len(starts(state)) in ((0, 2) if ended.status else (2,)), shortage
        again = run(*words, str(state))
        assert again.status == 0 or "already" in again.err, (shortage, again)
        assert len(starts(state)) == 2, shortage


@TRIES
def test_a_gc_takes_nothing_that_is_needed_where_memory_was_refused(lab: Lab, run: Faulty, tries: int) -> None:
    assert lab("run", lab.experiment(blocks=2), "-q").status == 0
    needed = artefacts(lab.state)
    unused = lab.state / "artefacts" / "ab" / ("ab" * 32)
    unused.parent.mkdir(exist_ok=True)
    words = ["store", "gc", "--yes", "-q", "--state"]
    shutil.copytree(lab.state, lab.directory / "clean")
    clean = run(*words, str(lab.directory / "clean"))
    for number, shortage in enumerate(shortages(clean, tries)):
        state = lab.directory / f"state-{number}"
        shutil.copytree(lab.state, state)
        (state / unused.relative_to(lab.state)).write_text("left")
        fault, memory = shortage
        require_said(run(*words, str(state), fault=fault, memory=memory), shortage)
        assert needed <= artefacts(state), shortage
        assert len(starts(state)) == 2, shortage
        assert run(*words, str(state)).status == 0, shortage
        assert artefacts(state) == needed, shortage
        require_sound(state, shortage)
        shutil.rmtree(state)
