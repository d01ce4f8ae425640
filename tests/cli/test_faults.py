"""Writes, syncs, renames and removals that fail one after the other: nothing that was finished is lost."""

from __future__ import annotations

import errno
import hashlib
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdyno.store.store import Store
from tests.cli.conftest import Lab
from tests.cli.faults import KINDS, Ended, Fault, Faulty, faulty

TRIES = 4
"""Of the calls of each kind, so many are tried."""
FULL_OR_BROKEN = (errno.ENOSPC, errno.EIO)
ERRORS = {"write": FULL_OR_BROKEN, "sync": (errno.EIO,), "name": FULL_OR_BROKEN, "remove": (errno.EIO,)}


@pytest.fixture
def run(lab: Lab) -> Iterator[Faulty]:
    with faulty(lab.directory, lab.environment) as commands:
        yield commands


def faults(clean: Ended) -> Iterator[Fault]:
    """Some of the calls that a command made, from the first to the last, with each error, once or for good."""
    dice = random.Random(5)
    for name, errors in ERRORS.items():
        kind = KINDS.index(name)
        last = clean.calls[kind]
        chosen = {1, last} | {dice.randint(1, last) for _ in range(TRIES - 2)} if last else set()
        for n in sorted(chosen):
            yield kind, n, dice.choice(errors), dice.randrange(2)


def require_said(ended: Ended, fault: Fault) -> None:
    """One message and no traceback; what doesn't matter may go unsaid."""
    assert "Traceback" not in ended.err, (fault, ended.err)
    assert ended.status in (0, 1, 3), (fault, ended)
    if ended.status:
        assert sum(line.startswith("kdyno: ") for line in ended.err.splitlines()) == 1, (fault, ended.err)


def require_whole_artefacts(state: Path, fault: Fault) -> None:
    for path in (state / "artefacts").glob("??/*"):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name, fault


def starts(state: Path) -> dict[str, object]:
    if not (state / "store.sqlite").exists():
        return {}
    with Store(f"sqlite:///{state / 'store.sqlite'}") as store:
        return {boot.key: boot.started for one in store.runs() for boot in store.boots(one.id)}


def artefacts(state: Path) -> set[str]:
    return {path.name for path in (state / "artefacts").glob("??/*")}


def require_all_artefacts(state: Path, fault: Fault) -> None:
    with Store(f"sqlite:///{state / 'store.sqlite'}") as store:
        assert store.artefacts() <= artefacts(state), fault


def test_a_run_goes_on_after_any_call_that_failed(lab: Lab, run: Faulty) -> None:
    words = ["run", lab.experiment(blocks=2), "-q", "--state"]
    clean = run(*words, str(lab.directory / "clean"))
    assert clean.status == 0, clean.err
    for number, fault in enumerate(faults(clean)):
        state = lab.directory / f"state-{number}"
        ended = run(*words, str(state), fault=fault)
        require_said(ended, fault)
        require_whole_artefacts(state, fault)
        before = starts(state)
        again = run(*words, str(state))
        assert (again.status, again.out) == (0, clean.out), (fault, again)
        assert before.items() <= starts(state).items(), fault
        require_all_artefacts(state, fault)
        shutil.rmtree(state)


def test_an_import_that_failed_is_done_by_the_next_one_and_what_it_says_is_there(lab: Lab, run: Faulty) -> None:
    assert lab("run", lab.experiment(blocks=2), "-q").status == 0
    packed = str(lab.directory / "run.kdyno")
    clean = run("store", "export", "latest", packed)
    whole = Path(packed).read_bytes()
    for fault in faults(clean):
        Path(packed).write_bytes(b"what was there")
        ended = run("store", "export", "latest", packed, fault=fault)
        require_said(ended, fault)
        assert Path(packed).read_bytes() in (whole, *([b"what was there"] if ended.status else [])), fault
    Path(packed).write_bytes(whole)
    words = ["store", "import", packed, "--state"]
    clean = run(*words, str(lab.directory / "clean"))
    for number, fault in enumerate(faults(clean)):
        state = lab.directory / f"state-{number}"
        ended = run(*words, str(state), fault=fault)
        require_said(ended, fault)
        require_whole_artefacts(state, fault)
        if ended.status:
            again = run(*words, str(state))
            assert again.status == 0 or "already" in again.err, (fault, again)
        assert len(starts(state)) == 2
        require_all_artefacts(state, fault)
        shutil.rmtree(state)


def test_a_gc_that_failed_has_taken_nothing_that_is_needed_and_ends_the_next_time(lab: Lab, run: Faulty) -> None:
    assert lab("run", lab.experiment(blocks=2), "-q").status == 0
    needed = artefacts(lab.state)
    for number in range(6):
        content = f"left {number}".encode()
        place = lab.state / "artefacts" / (name := hashlib.sha256(content).hexdigest())[:2] / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(content)
    words = ["store", "gc", "--yes", "-q", "--state"]
    shutil.copytree(lab.state, lab.directory / "clean")
    clean = run(*words, str(lab.directory / "clean"))
    assert artefacts(lab.directory / "clean") == needed
    for number, fault in enumerate(faults(clean)):
        state = lab.directory / f"state-{number}"
        shutil.copytree(lab.state, state)
        require_said(run(*words, str(state), fault=fault), fault)
        assert needed <= artefacts(state), fault
        assert len(starts(state)) == 2
        assert run(*words, str(state)).status == 0, fault
        assert artefacts(state) == needed, fault
        assert not list((state / "removed").iterdir()), fault
        shutil.rmtree(state)


def test_an_rm_that_failed_is_done_by_the_next_one_and_takes_a_run_whole_or_not_at_all(lab: Lab, run: Faulty) -> None:
    assert lab("run", lab.experiment(blocks=2), "-q").status == 0
    words = ["store", "rm", "latest", "--yes", "-q", "--state"]
    shutil.copytree(lab.state, lab.directory / "clean")
    clean = run(*words, str(lab.directory / "clean"))
    assert clean.status == 0, clean.err
    for number, fault in enumerate(faults(clean)):
        state = lab.directory / f"state-{number}"
        shutil.copytree(lab.state, state)
        ended = run(*words, str(state), fault=fault)
        require_said(ended, fault)
        require_whole_artefacts(state, fault)
        require_all_artefacts(state, fault)
        left = len(starts(state))
        assert left == 0 or (left == 2 and ended.status), (fault, ended)
        assert not left or run(*words, str(state)).status == 0, fault
        assert not starts(state), fault
        shutil.rmtree(state)
